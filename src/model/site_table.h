/* SPDX-License-Identifier: Apache-2.0 */
/*
 * site_table - what many lives of a process have in common, stored once.
 *
 * A life names its site by number; numbers are given in order and stay valid
 * until the table goes. One thread, no I/O, no clock.
 */
#ifndef TTM_MODEL_SITE_TABLE_H
#define TTM_MODEL_SITE_TABLE_H

#include <stdbool.h>
#include <stdint.h>

#include "model/quota.h"
#include "wire/life_row.h"

struct ttm_site {
    uint32_t allocator;  /* a device, a mesh or a submesh: each numbers its memory by itself */
    uint32_t device_set; /* ttm_device_sets */
    uint32_t origin;     /* ttm_origin_table, 0: not known */
    uint16_t banks;      /* of each device; 0: not known */
    uint8_t region;      /* enum ttm_region */
    uint8_t kind;        /* enum ttm_kernel_kind, of a buffer enum ttm_buffer_kind */
    uint8_t flags;       /* enum ttm_site_flags */
};

/* Such an allocation stays with a program: a circular buffer, a kernel, or a buffer it keeps. */
static inline bool ttm_site_is_of_program(const struct ttm_site *site)
{
    return (site->flags & TTM_SITE_PROGRAM) != 0 ||
           ttm_is_buffer_of_program(site->region, site->kind);
}

/* How often a site was seen, and the sums of its lives. An event changes all of it in one place. */
struct ttm_site_counts {
    uint64_t births;
    uint64_t ends; /* freed by their owner */
    uint64_t live; /* now, as are the next two */
    uint64_t bytes;
    uint64_t footprint_bytes;
    uint64_t first_ns; /* the first birth since it held nothing: no life is older */
    uint64_t last_ns;  /* the last birth so far: no life is younger */
};

/* A process that says more than this many different things about its lives is refused. */
#define TTM_SITES_MAX (1u << 16)

struct ttm_site_table {
    struct ttm_site *sites;
    struct ttm_site_counts *counts; /* of each site */
    uint32_t count;
    uint32_t room;
    uint32_t *index; /* open addressing, site + 1, 0 is empty */
    uint32_t index_size;
    uint32_t last; /* the site asked for last: most events repeat it */
    uint64_t seed;
    struct ttm_quota *quota; /* counts sites; NULL: none. Set by the owner after the init. */
};

/* Who chooses what sites are made of does not know 'seed'. */
void ttm_site_table_init(struct ttm_site_table *table, uint64_t seed);
void ttm_site_table_done(struct ttm_site_table *table);

/* The number of that site, a new one if need be. Returns 0, -ENOMEM or -ENOSPC. */
int ttm_site_table_intern(struct ttm_site_table *table, const struct ttm_site *site,
                          uint32_t *ret_number);

/* A life is added to the sums of its site or taken out, however it began or ended. */
static inline void ttm_site_counts_add(struct ttm_site_counts *counts, uint64_t bytes,
                                       uint64_t footprint_bytes, uint64_t birth_ns)
{
    /* What a process tells of later may have been born before the others. */
    if (counts->live == 0 || birth_ns < counts->first_ns)
        counts->first_ns = birth_ns;
    if (birth_ns > counts->last_ns)
        counts->last_ns = birth_ns;
    counts->live++;
    counts->bytes += bytes;
    counts->footprint_bytes += footprint_bytes;
}

/* The same for several, whose sums 'more' is. */
static inline void ttm_site_counts_add_many(struct ttm_site_counts *counts,
                                            const struct ttm_site_counts *more)
{
    if (counts->live == 0 || more->first_ns < counts->first_ns)
        counts->first_ns = more->first_ns;
    if (more->last_ns > counts->last_ns)
        counts->last_ns = more->last_ns;
    counts->births += more->live;
    counts->live += more->live;
    counts->bytes += more->bytes;
    counts->footprint_bytes += more->footprint_bytes;
}

static inline void ttm_site_counts_take(struct ttm_site_counts *counts, uint64_t bytes,
                                        uint64_t footprint_bytes)
{
    counts->live--;
    counts->bytes -= bytes;
    counts->footprint_bytes -= footprint_bytes;
}

/* Nothing of it is live any more; how often it was seen stays. */
void ttm_site_table_forget_lives(struct ttm_site_table *table);

static inline const struct ttm_site *ttm_site_table_get(const struct ttm_site_table *table,
                                                        uint32_t number)
{
    return &table->sites[number];
}

#endif /* TTM_MODEL_SITE_TABLE_H */
