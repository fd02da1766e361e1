/* SPDX-License-Identifier: Apache-2.0 */
/*
 * python_lines - from an instruction of a code object to its line.
 *
 * The tables are co_linetable's, as PEP 626 (3.10) and Objects/locations.md of
 * CPython (3.11 and newer) describe them. Pure functions over bytes.
 */
#ifndef TTM_STACK_PYTHON_LINES_H
#define TTM_STACK_PYTHON_LINES_H

#include <stdint.h>

/*
 * The line of the instruction 'offset' bytes into the code, 0 when the table has
 * none for it. 'first_line' is the code object's.
 */
uint32_t ttm_python_line_3_10(const uint8_t *table, uint32_t length, uint32_t first_line,
                              uint32_t offset);
uint32_t ttm_python_line_3_11(const uint8_t *table, uint32_t length, uint32_t first_line,
                              uint32_t offset);

#endif /* TTM_STACK_PYTHON_LINES_H */
