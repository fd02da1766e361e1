/* SPDX-License-Identifier: Apache-2.0 */
/*
 * registry - every live allocation of every process, and their totals.
 *
 * A life is one allocation from birth to end. Its key is the process, the
 * allocator, the region and the id; the same key born again while live ends the
 * first life as replaced. Totals are kept per process, device and region and can
 * be recomputed from the lives (ttm_snapshot_check). An end of something
 * unknown changes nothing but a counter, so no total can fall below zero.
 *
 * A registry belongs to one thread (in the server: the loop thread). It never
 * locks, logs, reads a clock or does I/O; time comes in with the event.
 */
#ifndef TTM_MODEL_REGISTRY_H
#define TTM_MODEL_REGISTRY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/list.h"
#include "model/cb_map.h"
#include "model/device_sets.h"
#include "model/life_table.h"
#include "model/origin_table.h"
#include "model/remains.h"
#include "model/site_table.h"
#include "model/story.h"
#include "model/user.h"
#include "wire/totals.h"

/* With sizes up to TTM_LIFE_BYTES_MAX no sum of this many can pass 64 bits. */
#define TTM_LIVES_MAX ((1u << 24) - 1)
/* One process may have a quarter of them, so that it cannot lock others out. */
#define TTM_PROCESS_LIVES_MAX (1u << 22)
#define TTM_LIFE_BYTES_MAX (1ull << 40)

/* Sets of several devices that one process may refer to. */
#define TTM_PROCESS_SETS_MAX 512

/* A process counts its serials up in each thread, whose number is in the upper 16 bits. */
#define TTM_SERIAL_BITS 48
#define TTM_SERIAL_THREADS 16 /* a power of two; several share a place */

struct ttm_process_device {
    uint16_t id;
    struct ttm_device_totals totals;
};

/* What is counted of a process, besides its totals. */
struct ttm_process_counters {
    uint64_t events;
    uint64_t unknown_frees;
    uint64_t ambiguous_frees;
    uint64_t replaced;
    uint64_t refused;
    uint64_t lost_events;
    uint64_t resyncs;
    uint64_t untracked;      /* by the process's own count: events it had no room for */
    uint64_t senseless;      /* likewise: those that it refused itself, as they make no sense */
    uint64_t unknown_ends;   /* likewise: ends of what was not live */
    uint64_t notes_left_out; /* likewise: names, contexts and stacks it had no room for */
    uint32_t connections;    /* open now */
    uint32_t events_per_s;
    uint16_t ring_permille; /* how full its fullest ring was when it was last read */
    bool is_disabled;       /* tracking is switched off in it */
    bool has_gap;           /* it was tracked before we knew it, or off for a while */
    bool is_behind;         /* it has still to tell what it holds */
    uint32_t resync_us;     /* from the need for the last telling until it was exact */
    bool has_open_loss;     /* events were lost, and no telling has made that good yet */
    bool is_inexact;        /* it ended before it could make good what was lost */
    /* Why the server itself does not know all of it: a text that stays; NULL: it does. */
    const char *server_trouble;
};

/* What was refused of it, here or by itself. */
static inline uint64_t ttm_process_refused(const struct ttm_process_counters *counters)
{
    return counters->refused + counters->senseless;
}

struct ttm_process_info {
    int32_t pid; /* 0: outside the server's namespace */
    uint32_t uid;
    uint8_t source;    /* enum ttm_source */
    uint64_t start_ns; /* wall clock; 0: not known */
    uint64_t run;      /* that it is part of, by its own word; 0: none */
    char command[TTM_STRING_MAX + 1];
};

/* Read-only outside the model, but for 'counters'. */
struct ttm_process {
    struct ttm_list link; /* in the registry, until it has ended */
    struct ttm_registry *reg;
    struct ttm_user *user;
    struct ttm_process_info info;
    struct ttm_process_counters counters;
    struct ttm_life_table lives;
    struct ttm_site_table sites;
    struct ttm_origin_table origins;
    struct ttm_story story;
    struct ttm_cb_map cbs;
    struct ttm_remains_set closed; /* what its devices were closed on; origins as its lives have */
    char runtime[TTM_STRING_MAX + 1]; /* "ttnn 0.81.1" */
    char trouble[TTM_STRING_MAX + 1]; /* why something in it is not tracked */
    uint32_t trouble_note;            /* that says it, 0: none */
    char opening[TTM_STRING_MAX + 1]; /* why it has no device although it opened one, or "" */
    struct ttm_process_device *devices;
    uint32_t device_count;
    uint32_t device_room;
    uint32_t *sets; /* of several devices: it has one reference to each while its memory is there */
    uint32_t largest_set; /* of these, in devices */
    uint32_t set_count;
    uint32_t set_room;
    uint64_t bytes;         /* of its lives, once per life; an alias adds nothing */
    uint64_t program_parts; /* of its allocations: those that stay with a program */
    uint64_t program_bytes; /* of these */
    uint32_t refs;          /* the registry's, and that of each snapshot */
    uint16_t *slots;        /* device id → index in 'devices' + 1; NULL before the first birth */
    uint64_t seed;
    /* Of the serials that have entered 'lives', by thread: none is higher (ttm_serial_is_new). */
    uint64_t serials_seen[TTM_SERIAL_THREADS];
    bool are_peaks_held;
    bool are_device_peaks_held;
    bool has_serials; /* its lives are found by serial, not by allocator, region and id */
    uint64_t births;  /* of a process without: serials are given here, from 1 on */
};

/* What is known of a device. A capacity of 0 is not known. */
struct ttm_device {
    uint32_t users;                         /* processes that have named it */
    const struct ttm_process *described_by; /* its facts are that process's; NULL: nobody's */
    uint64_t asic_id;
    uint32_t bank_count[TTM_REGION_COUNT];
    bool is_known;  /* told by a client or the server's start, not only named in an event */
    bool is_listed; /* by the server's start: it stays when no process names it any more */
    uint8_t arch;
    uint32_t core_count;
    uint32_t l1_per_core_bytes;
    uint32_t dram_channels;
    uint32_t dram_channel_bytes;
    uint64_t capacity_bytes[TTM_REGION_COUNT];
    char board[TTM_STRING_MAX + 1];
    struct ttm_device_totals totals; /* of all processes */
};

struct ttm_registry {
    struct ttm_list processes;
    struct ttm_list unreferenced; /* processes, to be freed in slices */
    struct ttm_list graves;       /* lives of ended processes, to be let go in slices */
    struct ttm_device *devices[TTM_DEVICE_COUNT]; /* NULL: never heard of */
    uint32_t device_count;                        /* devices heard of */
    uint32_t process_count;
    uint32_t snapshots; /* that share lives with it */
    uint32_t lives;
    uint64_t births;
    uint64_t ends;
    uint64_t processes_ended;
    uint64_t seed;                     /* keeps a client from choosing ids that share a bucket */
    struct ttm_process_counters ended; /* the counters of processes that have ended */
    struct ttm_device_sets sets;
    struct ttm_users users;
};

/* Returns NULL only when memory is short. 'seed' is any number that clients do not know. */
struct ttm_registry *ttm_registry_new(uint64_t seed);

/* That user has no limits of its own, as root has none. To be called before a process is added. */
void ttm_registry_set_owner(struct ttm_registry *reg, uint32_t uid);

/* Users whose ids are in one of these ranges have their shares together. Borrowed. */
void ttm_registry_set_id_ranges(struct ttm_registry *reg, const struct ttm_id_ranges *ranges);

/* NULL is fine. No snapshot may be left. */
void ttm_registry_free(struct ttm_registry *reg);

/* Returns 0 or -ENOMEM. The process stays until ttm_registry_end_process(). */
int ttm_registry_add_process(struct ttm_registry *reg, const struct ttm_process_info *info,
                             struct ttm_process **ret);

/*
 * The number of the set of these devices. A site, a circular buffer or anything else of the process
 * may refer to it for as long as the memory of the process is there: the process has a reference.
 * Returns 0; -EINVAL for no device or one out of range; -ENOSPC over the limit on sets of the
 * process, its user or the registry; -ENOMEM.
 */
int ttm_registry_hold_set(struct ttm_registry *reg, struct ttm_process *proc,
                          const uint16_t *devices, uint32_t count, uint32_t *ret_number);

/* Without parts of programs, which the program cache keeps on purpose. */
struct ttm_departure {
    uint64_t lives;        /* but for those that stay with a program */
    uint64_t bytes;        /* of its lives, once per life; an alias adds nothing */
    uint64_t closed;       /* that had ended with their device */
    uint64_t closed_bytes; /* likewise */
};

/*
 * The process has ended: its totals are gone when this returns, its memory goes
 * with ttm_registry_reclaim(). 'proc' is not to be used any more.
 */
void ttm_registry_end_process(struct ttm_registry *reg, struct ttm_process *proc,
                              struct ttm_departure *ret);

/* Lets go of a slice of what ended processes held; returns whether there is more. */
bool ttm_registry_reclaim(struct ttm_registry *reg);

/* Lets go of lives that a snapshot shared, in slices as those of ended processes. */
void ttm_registry_bury(struct ttm_registry *reg, struct ttm_life_view *lives);

struct ttm_birth {
    uint64_t serial; /* of a process with serials */
    uint64_t id;
    uint64_t address;
    uint64_t bytes;
    uint64_t footprint_bytes;
    uint64_t time_ns; /* monotonic */
    struct ttm_site site;
    bool is_unknown; /* of a process with serials: the caller has looked, and it is not live */
};

/* How a life ended. */
enum ttm_end {
    TTM_END_FREED,    /* by its owner */
    TTM_END_REPLACED, /* its key was born again */
    TTM_END_CLOSED,   /* its device was closed */
    TTM_END_UNHEARD,  /* somehow: it is gone, and that was not heard */
};

/* A life that ended, for those who want to tell of it. */
struct ttm_ended {
    struct ttm_life life;
    struct ttm_site site;
};

/*
 * Returns 0; 1 when a life of that key was live and has ended as replaced
 * ('ret_replaced', may be NULL); -EEXIST for a serial that is live; -EINVAL for a region, kind or device set that
 * is none; -ERANGE for a size that no device has; -ENOSPC over a limit on lives;
 * -ENOMEM. On an error nothing has changed.
 */
int ttm_registry_birth(struct ttm_registry *reg, struct ttm_process *proc,
                       const struct ttm_birth *birth, struct ttm_ended *ret_replaced);

/*
 * Of a process with serials: births of lives that all have one site, which is that of a life that was
 * born before and summed as buffers are (ttm_brief_site_of()). At most TTM_FIND_MAX; the caller has
 * looked, and none is live.
 * Returns how many have begun; less than all of them where the next is one for ttm_registry_birth(),
 * which says what is wrong with it.
 */
uint32_t ttm_registry_births(struct ttm_registry *reg, struct ttm_process *proc,
                             const struct ttm_life *lives, uint32_t count);

/*
 * Of a process with serials: where the lives of some are, at most TTM_FIND_MAX; TTM_LIFE_NONE for
 * one that is not live. Their memory is waited for together, and not for each in turn.
 */
#define TTM_FIND_MAX 64
void ttm_registry_find(const struct ttm_process *proc, const uint64_t *serials, uint32_t count,
                       uint32_t *ret_refs);

/*
 * The life of that serial has ended. Returns 0, or -ENOENT, which is not counted:
 * its birth may still be to come.
 */
int ttm_registry_end_serial(struct ttm_registry *reg, struct ttm_process *proc, uint64_t serial,
                            enum ttm_end how, struct ttm_ended *ret);

/* Whether a life of that serial is live. */
bool ttm_registry_has_serial(const struct ttm_process *proc, uint64_t serial);

static inline uint64_t *ttm_serials_seen(struct ttm_process *proc, uint64_t serial)
{
    return &proc->serials_seen[serial >> TTM_SERIAL_BITS & (TTM_SERIAL_THREADS - 1)];
}

/* Whether it is higher than any that was live, as that of a birth is: it need not be looked for. */
static inline bool ttm_serial_is_new(const struct ttm_process *proc, uint64_t serial)
{
    return serial << (64 - TTM_SERIAL_BITS) >
           *ttm_serials_seen((struct ttm_process *)proc, serial); /* is read alone */
}

/*
 * The life of that serial has another origin from now on. Returns 0; -ENOENT;
 * -ENOSPC or -ENOMEM, and then it keeps its own.
 */
int ttm_registry_set_origin(struct ttm_registry *reg, struct ttm_process *proc, uint64_t serial,
                            uint32_t origin);

/* Nothing is known any more of what the process holds: its lives go, neither freed nor closed. */
void ttm_registry_forget_lives(struct ttm_registry *reg, struct ttm_process *proc);

/*
 * The owner gave back 'id' in one of the regions of 'region_bits'. When several
 * match, the newest ends. Returns 0; 1 when the choice was ambiguous, which is
 * counted; -ENOENT when nothing matched, which is counted.
 */
int ttm_registry_end(struct ttm_registry *reg, struct ttm_process *proc, uint32_t allocator,
                     uint32_t region_bits, uint64_t id, struct ttm_ended *ret);

/* The device of that id, made known if need be; NULL out of range or when memory is short. */
struct ttm_device *ttm_registry_device(struct ttm_registry *reg, uint32_t id);

/*
 * Whether what the process says of the device holds, and that of no other user from then on: facts
 * of the first one that describes it, until that ends, and of root or the owner of the registry.
 */
bool ttm_registry_may_describe(struct ttm_device *device, const struct ttm_process *proc);

/* Fill in what a board fixes, where nothing better is known. */
void ttm_device_set_board(struct ttm_device *device, const char *name);
void ttm_device_set_arch(struct ttm_device *device, unsigned arch);
/* What a tracked process says of it holds, wherever it says something. */
void ttm_device_set_note(struct ttm_device *device, const struct ttm_device_note *note);

/* Both sums of 'device' exist from here on. Returns 0; -ENOSPC over the limit of its user; -ENOMEM. */
int ttm_registry_know_device(struct ttm_registry *reg, struct ttm_process *proc, uint16_t device);

/*
 * Ends of the process were lost, so that its sums may be too high: until they are exact again no
 * peak rises with them, neither its own nor those of its devices. Peaks are what was held for sure.
 */
void ttm_registry_hold_peaks(struct ttm_registry *reg, struct ttm_process *proc, bool are_held);

/*
 * The peaks of its devices rise again, its own do not yet: a process that never becomes exact must
 * not keep the peaks of others down.
 */
void ttm_registry_release_device_peaks(struct ttm_registry *reg, struct ttm_process *proc);

/* The peaks of the process are what it holds now; those of the devices stay. */
void ttm_registry_reset_peaks(struct ttm_process *proc);

/* Memory that lives and their index take, graves not included. */
size_t ttm_registry_life_bytes(const struct ttm_registry *reg);

/* Snapshots hold processes that may have ended meanwhile. */
void ttm_process_ref(struct ttm_process *proc);
void ttm_process_unref(struct ttm_process *proc);

/* To what there is now, unless they are held. */
static inline void ttm_region_raise_peaks(struct ttm_totals *totals)
{
    if (totals->peak_holds > 0)
        return;
    if (totals->bytes > totals->peak_bytes)
        totals->peak_bytes = totals->bytes;
    if (totals->footprint_bytes > totals->peak_footprint_bytes)
        totals->peak_footprint_bytes = totals->footprint_bytes;
}

/* The same for circular buffers by core. */
void ttm_cb_raise_peaks(struct ttm_device_totals *totals);

/* Adds lives to the totals of their region; they have so many bytes in all. */
static inline void ttm_region_add_many(struct ttm_totals *totals, uint32_t lives, uint64_t bytes,
                                       uint64_t footprint_bytes)
{
    totals->count += lives;
    totals->births += lives;
    totals->bytes += bytes;
    totals->footprint_bytes += footprint_bytes;
    if (totals->bytes > totals->peak_bytes ||
        totals->footprint_bytes > totals->peak_footprint_bytes)
        ttm_region_raise_peaks(totals);
}

/* Adds a life to the totals of its region or takes it out; who ended it is counted elsewhere. */
static inline void ttm_region_add(struct ttm_totals *totals, uint64_t bytes,
                                  uint64_t footprint_bytes)
{
    ttm_region_add_many(totals, 1, bytes, footprint_bytes);
}

static inline void ttm_region_take(struct ttm_totals *totals, uint64_t bytes,
                                   uint64_t footprint_bytes)
{
    totals->count--;
    totals->bytes -= bytes;
    totals->footprint_bytes -= footprint_bytes;
}

/* Adds a life to totals or takes it out; shared by the registry and the check. */
void ttm_totals_add(struct ttm_device_totals *totals, const struct ttm_site *site,
                    const struct ttm_life *life);
/* The allocations of a site, to the sums that a check compares. */
void ttm_totals_add_site(struct ttm_device_totals *totals, const struct ttm_site *site,
                         const struct ttm_site_counts *sum);
void ttm_totals_take(struct ttm_device_totals *totals, const struct ttm_site *site,
                     const struct ttm_life *life);

#endif /* TTM_MODEL_REGISTRY_H */
