/* SPDX-License-Identifier: Apache-2.0 */
/*
 * faults - memory that runs short when a test wants it to.
 *
 * The linker puts these between our code and malloc, calloc, realloc and
 * ttm_pages_alloc (--wrap in meson.build).
 */
#ifndef TTM_TESTS_UNIT_FAULTS_H
#define TTM_TESTS_UNIT_FAULTS_H

#include <stdbool.h>
#include <stddef.h>

/* The next 'grants' allocations succeed, all after them fail, until faults_end(). */
void faults_begin(unsigned grants);

/* Returns whether any allocation has failed. */
bool faults_end(void);

/* Bytes from ttm_pages_alloc() that were not given back. */
size_t faults_pages_out(void);

#endif /* TTM_TESTS_UNIT_FAULTS_H */
