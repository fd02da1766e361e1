/* SPDX-License-Identifier: Apache-2.0 */
/*
 * view - what the dashboard shows and how keys change it: the view model.
 *
 * Facts and origins come in, rows in order come out; drawing reads them and decides
 * nothing but where. No I/O, no clock, no terminal. One thread.
 */
#ifndef TTM_DASHBOARD_VIEW_H
#define TTM_DASHBOARD_VIEW_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "dashboard/facts.h"
#include "dashboard/growth.h"
#include "dashboard/origins.h"
#include "dashboard/samples.h"

enum ttm_view_page { TTM_PAGE_DEVICES, TTM_PAGE_CHARTS, TTM_PAGE_ORIGINS, TTM_PAGE_COUNT };

enum ttm_process_sort {
    TTM_SORT_MEMORY,
    TTM_SORT_GROWTH,
    TTM_SORT_PID,
    TTM_SORT_USER,
    TTM_SORT_COMMAND,
    TTM_PROCESS_SORT_COUNT
};

enum ttm_origin_sort {
    TTM_ORIGIN_SORT_BYTES,
    TTM_ORIGIN_SORT_GROWTH,
    TTM_ORIGIN_SORT_COUNT,
    TTM_ORIGIN_SORT_AGE,
    TTM_ORIGIN_SORT_WHERE,
    TTM_ORIGIN_SORT_END
};

/* Words for settings and screens: "memory", "growth", … */
const char *ttm_process_sort_name(enum ttm_process_sort sort);
const char *ttm_origin_sort_name(enum ttm_origin_sort sort);

/* Keys that are no characters. */
enum ttm_key {
    TTM_KEY_UP = 0x110000,
    TTM_KEY_DOWN,
    TTM_KEY_LEFT,
    TTM_KEY_RIGHT,
    TTM_KEY_PAGE_UP,
    TTM_KEY_PAGE_DOWN,
    TTM_KEY_HOME,
    TTM_KEY_END,
    TTM_KEY_ENTER,
    TTM_KEY_ESCAPE,
    TTM_KEY_BACKSPACE,
};

#define TTM_FILTER_SIZE 64

/* What is remembered from one time to the next. */
struct ttm_view_settings {
    enum ttm_view_page page;
    enum ttm_process_sort process_sort;
    enum ttm_origin_sort origin_sort;
    bool is_reversed[TTM_PAGE_COUNT];
    unsigned window_s;
};

static inline bool ttm_view_settings_are_equal(const struct ttm_view_settings *a,
                                               const struct ttm_view_settings *b)
{
    for (unsigned i = 0; i < TTM_PAGE_COUNT; i++) {
        if (a->is_reversed[i] != b->is_reversed[i])
            return false;
    }
    return a->page == b->page && a->process_sort == b->process_sort &&
           a->origin_sort == b->origin_sort && a->window_s == b->window_s;
}

/* Windows of the charts: 30 s to 1 h. */
extern const unsigned ttm_view_windows_s[];
#define TTM_VIEW_WINDOW_COUNT 7

struct ttm_process_line {
    const struct ttm_facts_process *process;
    uint64_t bytes; /* in all regions */
    bool has_growth;
    int64_t growth_bytes_per_s;
};

struct ttm_origin_line {
    const struct ttm_origin_group *group;
    bool has_growth;
    int64_t growth_bytes_per_s;
};

/* A table with a selected row. The selection is the row's key, so it stays as rows move. */
struct ttm_view_list {
    uint64_t key; /* 0: nothing was chosen yet */
    size_t selected;
    size_t first; /* the first row that is on the screen */
    size_t page;  /* rows on the screen, told by drawing */
    size_t count;
};

/* The function that a native frame of a process, "module+0xoffset", is in; borrowed until the next call. */
typedef const char *(*ttm_frame_name_fn)(void *context, int32_t pid, const char *frame,
                                         size_t length);

struct ttm_view {
    struct ttm_view_settings settings;
    ttm_frame_name_fn frame_name; /* set by the owner; NULL: frames are shown as they are */
    void *frame_context;
    char filter[TTM_FILTER_SIZE];
    bool is_typing; /* the filter */
    bool is_paused;
    bool has_help;
    bool has_detail; /* of the selected origin */
    bool has_ended;  /* q was typed */

    const struct ttm_facts *facts; /* borrowed until the next ttm_view_take() */
    struct ttm_samples history;
    struct ttm_growth process_growth, origin_growth;

    struct ttm_process_line *processes; /* filtered and sorted */
    size_t process_count, process_room;
    struct ttm_view_list process_list;

    bool has_origins;  /* they were told at least once */
    uint64_t lives_ns; /* when they were */
    struct ttm_origins origins;
    struct ttm_origin_line *lines; /* filtered and sorted */
    size_t line_count, line_room;
    struct ttm_view_list origin_list;
    struct ttm_origin_detail detail; /* of the selected one */
    size_t detail_first;             /* the first of its rows that is on the screen */
    size_t detail_page;              /* rows on the screen, told by drawing */
    struct ttm_bank bank;            /* where it lies */
    bool has_bank;
    bool is_bank_told;     /* else its lives are still to come */
    uint64_t bank_version; /* of the lives it was built of; 0: not counted */
    bool has_whole_bank;   /* else a bank of which little is in use is drawn larger */
    uint16_t bank_device;
    uint8_t bank_region;
    uint16_t wanted_device; /* whose bank is drawn of an origin that is there; else its first one */

    size_t first_device;   /* the first that is on the screen */
    size_t devices_a_page; /* told by drawing */
};

void ttm_view_init(struct ttm_view *view, const struct ttm_view_settings *settings);
void ttm_view_done(struct ttm_view *view);

extern const struct ttm_view_settings ttm_view_defaults;

/*
 * A new moment; 'facts' is borrowed until the next call. Nothing is taken while the
 * view is paused, but for the first one. Returns 0 or -ENOMEM; then rows are missing.
 */
int ttm_view_take(struct ttm_view *view, const struct ttm_facts *facts);

/*
 * New sums of sites, or lives where a server has none, at that time; 'source' is borrowed
 * for the call and its answers until the next one, for the detail. Returns 0 or -ENOMEM.
 */
int ttm_view_take_lives(struct ttm_view *view, const struct ttm_origins_source *source,
                        uint64_t time_ns);

/* Whether origins are shown now, so that somebody has to ask for them. */
bool ttm_view_wants_lives(const struct ttm_view *view);

/* New lives for a closer look; 'source' as above. Returns 0 or -ENOMEM. */
int ttm_view_take_closer(struct ttm_view *view, const struct ttm_origins_source *source);

/* Whether all that is shown of the selected origin is at hand. */
bool ttm_view_is_told(const struct ttm_view *view);

/* Whether single lives are to be asked for, and which. */
bool ttm_view_wants_closer(const struct ttm_view *view, struct ttm_closer_look *ret);

/* A key was typed. Returns whether something may look different now. */
bool ttm_view_key(struct ttm_view *view, const struct ttm_origins_source *source, uint32_t key);

/* Moves 'first' so that the selected row is among the 'page' rows on the screen. */
void ttm_view_list_show(struct ttm_view_list *list, size_t page);

#endif /* TTM_DASHBOARD_VIEW_H */
