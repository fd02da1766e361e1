/* SPDX-License-Identifier: Apache-2.0 */
#include "dashboard/view.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

const unsigned ttm_view_windows_s[TTM_VIEW_WINDOW_COUNT] = {30, 60, 120, 300, 600, 1800, 3600};

const struct ttm_view_settings ttm_view_defaults = {.window_s = 60};

const char *ttm_process_sort_name(enum ttm_process_sort sort)
{
    static const char *const names[TTM_PROCESS_SORT_COUNT] = {"memory", "growth", "pid", "user",
                                                              "command"};

    return names[sort];
}

const char *ttm_origin_sort_name(enum ttm_origin_sort sort)
{
    static const char *const names[TTM_ORIGIN_SORT_END] = {"bytes", "growth", "count", "age",
                                                           "where"};

    return names[sort];
}

void ttm_view_init(struct ttm_view *view, const struct ttm_view_settings *settings)
{
    *view = (struct ttm_view){.settings = *settings};
}

void ttm_view_done(struct ttm_view *view)
{
    ttm_samples_done(&view->history);
    ttm_growth_done(&view->process_growth);
    ttm_growth_done(&view->origin_growth);
    ttm_origins_done(&view->origins);
    ttm_bank_done(&view->bank);
    free(view->processes);
    free(view->lines);
    *view = (struct ttm_view){0};
}

/* ---- filter and order ---- */

/* Whether each word of the filter is in one of the texts, in whatever case. */
static bool is_matched(const char *filter, const char *const *texts, size_t count)
{
    char words[TTM_FILTER_SIZE];
    char *rest;

    (void)snprintf(words, sizeof(words), "%s", filter);
    for (char *word = strtok_r(words, " ", &rest); word; word = strtok_r(NULL, " ", &rest)) {
        bool is_found = false;
        for (size_t i = 0; i < count && !is_found; i++)
            is_found = strcasestr(texts[i], word) != NULL;
        if (!is_found)
            return false;
    }
    return true;
}

static bool is_process_wanted(const struct ttm_view *view, const struct ttm_facts_process *process)
{
    char pid[16];

    if (!view->filter[0])
        return true;
    (void)snprintf(pid, sizeof(pid), "%d", process->pid);
    const char *const texts[] = {pid, process->user, process->reports, process->command};
    return is_matched(view->filter, texts, sizeof(texts) / sizeof(texts[0]));
}

static bool is_origin_wanted(const struct ttm_view *view, const struct ttm_origin_group *group)
{
    char pid[16];

    if (!view->filter[0])
        return true;
    (void)snprintf(pid, sizeof(pid), "%d", group->pid);
    const char *const texts[] = {pid, group->where, group->operation, group->callers,
                                 ttm_region_name(group->region)};
    return is_matched(view->filter, texts, sizeof(texts) / sizeof(texts[0]));
}

static uint64_t process_bytes(const struct ttm_facts_process *process)
{
    uint64_t sum = 0;

    for (unsigned r = 0; r < TTM_REGION_COUNT; r++)
        sum += process->regions[r].used_bytes;
    return sum;
}

static int compare_u64(uint64_t x, uint64_t y)
{
    return x < y ? -1 : x > y;
}

/* An unknown rate counts as none. */
static int compare_growth(bool has_x, int64_t x, bool has_y, int64_t y)
{
    x = has_x ? x : 0;
    y = has_y ? y : 0;
    return x < y ? -1 : x > y;
}

static int compare_processes(const void *a, const void *b, void *context)
{
    const struct ttm_process_line *x = a, *y = b;
    const struct ttm_view *view = context;
    int r = 0;

    switch (view->settings.process_sort) {
    case TTM_SORT_GROWTH:
        r = -compare_growth(x->has_growth, x->growth_bytes_per_s, y->has_growth,
                            y->growth_bytes_per_s);
        break;
    case TTM_SORT_USER:
        r = strcmp(x->process->user, y->process->user);
        break;
    case TTM_SORT_COMMAND:
        r = strcmp(x->process->command, y->process->command);
        break;
    case TTM_SORT_PID:
    case TTM_PROCESS_SORT_COUNT:
        break;
    case TTM_SORT_MEMORY:
        r = -compare_u64(x->bytes, y->bytes);
        break;
    }
    if (r == 0)
        r = (x->process->pid > y->process->pid) - (x->process->pid < y->process->pid);
    return view->settings.is_reversed[TTM_PAGE_DEVICES] ? -r : r;
}

static int compare_origins(const void *a, const void *b, void *context)
{
    const struct ttm_origin_line *x = a, *y = b;
    const struct ttm_view *view = context;
    int r = 0;

    switch (view->settings.origin_sort) {
    case TTM_ORIGIN_SORT_GROWTH:
        r = -compare_growth(x->has_growth, x->growth_bytes_per_s, y->has_growth,
                            y->growth_bytes_per_s);
        break;
    case TTM_ORIGIN_SORT_COUNT:
        r = -compare_u64(x->group->count, y->group->count);
        break;
    case TTM_ORIGIN_SORT_AGE:
        r = -compare_u64(x->group->held_ns, y->group->held_ns);
        break;
    case TTM_ORIGIN_SORT_WHERE:
        r = strcmp(x->group->where, y->group->where);
        break;
    case TTM_ORIGIN_SORT_BYTES:
    case TTM_ORIGIN_SORT_END:
        break;
    }
    if (r == 0)
        r = -compare_u64(x->group->used_bytes, y->group->used_bytes);
    if (r == 0)
        r = (x->group->pid > y->group->pid) - (x->group->pid < y->group->pid);
    if (r == 0)
        r = compare_u64(x->group->key, y->group->key);
    return view->settings.is_reversed[TTM_PAGE_ORIGINS] ? -r : r;
}

/* ---- lists ---- */

static uint64_t process_key(const struct ttm_facts_process *process)
{
    return (uint64_t)(uint32_t)process->pid + 1;
}

/* A row with the key that was chosen stays chosen; else the place does. */
static void list_update(struct ttm_view_list *list, size_t count, size_t found)
{
    list->count = count;
    if (found < count)
        list->selected = found;
    else if (list->selected >= count)
        list->selected = count > 0 ? count - 1 : 0;
}

void ttm_view_list_show(struct ttm_view_list *list, size_t page)
{
    list->page = page;
    if (list->selected < list->first)
        list->first = list->selected;
    else if (page > 0 && list->selected >= list->first + page)
        list->first = list->selected - page + 1;
    if (list->first + page > list->count)
        list->first = list->count > page ? list->count - page : 0;
}

static int reserve(void **array, size_t *room, size_t count, size_t element_size)
{
    if (count <= *room)
        return 0;
    void *grown = realloc(*array, count * element_size);
    if (!grown)
        return -ENOMEM;
    *array = grown;
    *room = count;
    return 0;
}

static int order_processes(struct ttm_view *view)
{
    const struct ttm_facts *facts = view->facts;
    size_t count = 0, found = SIZE_MAX;

    view->process_count = 0;
    if (!facts || reserve((void **)&view->processes, &view->process_room, facts->process_count,
                          sizeof(view->processes[0])) < 0) {
        list_update(&view->process_list, 0, SIZE_MAX);
        return facts ? -ENOMEM : 0;
    }
    for (size_t i = 0; i < facts->process_count; i++) {
        const struct ttm_facts_process *process = &facts->processes[i];
        struct ttm_process_line line = {.process = process, .bytes = process_bytes(process)};
        if (!is_process_wanted(view, process))
            continue;
        line.has_growth =
            ttm_growth_rate(&view->process_growth, process_key(process), &line.growth_bytes_per_s);
        view->processes[count++] = line;
    }
    if (count > 0)
        qsort_r(view->processes, count, sizeof(view->processes[0]), compare_processes, view);
    for (size_t i = 0; i < count; i++) {
        if (process_key(view->processes[i].process) == view->process_list.key)
            found = i;
    }
    view->process_count = count;
    list_update(&view->process_list, count, found);
    return 0;
}

static int order_origins(struct ttm_view *view)
{
    const struct ttm_origins *origins = &view->origins;
    size_t count = 0, found = SIZE_MAX;

    view->line_count = 0;
    if (reserve((void **)&view->lines, &view->line_room, origins->count, sizeof(view->lines[0])) <
        0) {
        list_update(&view->origin_list, 0, SIZE_MAX);
        return -ENOMEM;
    }
    for (size_t i = 0; i < origins->count; i++) {
        const struct ttm_origin_group *group = &origins->groups[i];
        struct ttm_origin_line line = {.group = group};
        if (!is_origin_wanted(view, group))
            continue;
        line.has_growth =
            ttm_growth_rate(&view->origin_growth, group->key, &line.growth_bytes_per_s);
        view->lines[count++] = line;
    }
    if (count > 0)
        qsort_r(view->lines, count, sizeof(view->lines[0]), compare_origins, view);
    for (size_t i = 0; i < count; i++) {
        if (view->lines[i].group->key == view->origin_list.key)
            found = i;
    }
    view->line_count = count;
    list_update(&view->origin_list, count, found);
    return 0;
}

/* ---- what comes in ---- */

static int remember(struct ttm_view *view, const struct ttm_facts *facts)
{
    int r = 0;

    for (size_t i = 0; r == 0 && i < facts->device_count; i++) {
        const struct ttm_facts_device *device = &facts->devices[i];
        const uint64_t bytes[TTM_TRACK_COUNT] = {ttm_facts_dram_bytes(device),
                                                 ttm_facts_l1_bytes(device)};
        if (device->regions[TTM_REGION_DRAM].is_known)
            r = ttm_samples_add(&view->history, device->id, facts->time_ns, bytes);
    }
    for (size_t i = 0; r == 0 && i < facts->process_count; i++) {
        const struct ttm_facts_process *process = &facts->processes[i];
        if (process->regions[TTM_REGION_DRAM].is_known)
            r = ttm_growth_tell(&view->process_growth, process_key(process), facts->time_ns,
                                process_bytes(process));
    }
    ttm_growth_sweep(&view->process_growth, facts->time_ns);
    return r;
}

int ttm_view_take(struct ttm_view *view, const struct ttm_facts *facts)
{
    view->facts = facts;
    const int r = remember(view, facts);
    if (view->first_device >= facts->device_count)
        view->first_device = 0;
    const int ordered = order_processes(view);
    return r < 0 ? r : ordered;
}

/* Circular buffers and kernels lie below the buffers of L1, and differ from core to core. */
static uint8_t bank_region_of(const struct ttm_origin_group *group)
{
    return group->region == TTM_REGION_CB || group->region == TTM_REGION_KERNEL ? TTM_REGION_L1
                                                                                : group->region;
}

static uint16_t bank_device_of(const struct ttm_view *view, const struct ttm_origin_group *group)
{
    return ttm_origin_group_is_on(group, view->wanted_device) ? view->wanted_device
                                                              : group->first_device;
}

/* Builds the bank anew if it is another one, or of other lives. Returns 0 or -ENOMEM. */
static int look_at_bank(struct ttm_view *view, const struct ttm_origins_source *source,
                        uint16_t device, uint8_t region)
{
    const bool is_same = view->bank_version != 0 && view->bank_version == source->lives_version &&
                         view->bank_device == device && view->bank_region == region;
    int r = 0;

    view->bank_device = device;
    view->bank_region = region;
    view->is_bank_told = ttm_origins_has_bank(source, device, region);
    if (view->is_bank_told && !is_same)
        r = ttm_bank_build(&view->bank, source, device, region);
    view->bank_version = view->is_bank_told && r == 0 ? source->lives_version : 0;
    return r;
}

/* The detail and the bank of what is selected. */
static int look_closer(struct ttm_view *view, const struct ttm_origins_source *source)
{
    const struct ttm_view_list *list = &view->origin_list;

    view->has_bank = false;
    if (list->selected >= view->line_count || !source)
        return 0;
    const struct ttm_origin_group *group = view->lines[list->selected].group;
    ttm_origins_detail(source, group, &view->detail);
    if (group->region == TTM_REGION_SYSTEM_MEMORY)
        return 0;
    const int r = look_at_bank(view, source, bank_device_of(view, group), bank_region_of(group));
    view->has_bank = r == 0;
    return r;
}

int ttm_view_take_lives(struct ttm_view *view, const struct ttm_origins_source *source,
                        uint64_t time_ns)
{
    int r = ttm_origins_build(&view->origins, source);

    view->has_origins = true;
    view->lives_ns = time_ns;
    for (size_t i = 0; r == 0 && i < view->origins.count; i++)
        r = ttm_growth_tell(&view->origin_growth, view->origins.groups[i].key, time_ns,
                            view->origins.groups[i].used_bytes);
    ttm_growth_sweep(&view->origin_growth, time_ns);
    const int ordered = order_origins(view);
    const int looked = look_closer(view, source);
    return r < 0 ? r : ordered < 0 ? ordered : looked;
}

int ttm_view_take_closer(struct ttm_view *view, const struct ttm_origins_source *source)
{
    return view->has_origins ? look_closer(view, source) : 0;
}

bool ttm_view_is_told(const struct ttm_view *view)
{
    return view->detail.is_told && (view->is_bank_told || !view->has_bank);
}

bool ttm_view_wants_closer(const struct ttm_view *view, struct ttm_closer_look *ret)
{
    const struct ttm_view_list *list = &view->origin_list;

    if (view->settings.page != TTM_PAGE_ORIGINS || list->selected >= view->line_count ||
        (view->is_paused && ttm_view_is_told(view)))
        return false;
    const struct ttm_origin_group *group = view->lines[list->selected].group;
    *ret = (struct ttm_closer_look){
        .device = bank_device_of(view, group),
        .region = bank_region_of(group),
        .origin_region = group->region,
        .pid = group->pid,
        .origin = group->origin_number,
    };
    return true;
}

bool ttm_view_wants_lives(const struct ttm_view *view)
{
    return view->settings.page == TTM_PAGE_ORIGINS && !(view->is_paused && view->has_origins);
}

/* ---- keys ---- */

static void reorder(struct ttm_view *view, const struct ttm_origins_source *source)
{
    (void)order_processes(view); /* without memory the old rows stay */
    if (view->has_origins) {
        (void)order_origins(view);
        (void)look_closer(view, source);
    }
}

static void move_window(struct ttm_view *view, int step)
{
    int at = 0;

    while (at < TTM_VIEW_WINDOW_COUNT - 1 && ttm_view_windows_s[at] < view->settings.window_s)
        at++;
    at += step;
    if (at >= 0 && at < TTM_VIEW_WINDOW_COUNT)
        view->settings.window_s = ttm_view_windows_s[at];
}

static void move_list(struct ttm_view_list *list, uint32_t key)
{
    const size_t page = list->page > 1 ? list->page - 1 : 1;
    const size_t last = list->count > 0 ? list->count - 1 : 0;
    size_t at = list->selected;

    if (key == TTM_KEY_UP)
        at -= at > 0;
    else if (key == TTM_KEY_DOWN)
        at++;
    else if (key == TTM_KEY_PAGE_UP)
        at = at > page ? at - page : 0;
    else if (key == TTM_KEY_PAGE_DOWN)
        at += page;
    else
        at = key == TTM_KEY_HOME ? 0 : last;
    list->selected = at < last ? at : last;
}

static void move_devices(struct ttm_view *view, uint32_t key)
{
    const size_t count = view->facts ? view->facts->device_count : 0;
    const size_t step = key == TTM_KEY_PAGE_UP || key == TTM_KEY_PAGE_DOWN ||
                                view->settings.page == TTM_PAGE_DEVICES
                            ? (view->devices_a_page > 0 ? view->devices_a_page : 1)
                            : 1;
    const size_t last = count > view->devices_a_page ? count - view->devices_a_page : 0;
    size_t at = view->first_device;

    if (key == TTM_KEY_HOME)
        at = 0;
    else if (key == TTM_KEY_END)
        at = last;
    else if (key == TTM_KEY_LEFT || key == TTM_KEY_UP || key == TTM_KEY_PAGE_UP)
        at = at > step ? at - step : 0;
    else
        at += step;
    view->first_device = at < last ? at : last;
}

/* Within one origin; drawing knows how far down it goes. Returns whether the key is for that. */
static bool move_detail(struct ttm_view *view, uint32_t key)
{
    const size_t page = view->detail_page > 1 ? view->detail_page - 1 : 1;

    if (key == TTM_KEY_PAGE_DOWN)
        view->detail_first += page;
    else if (key == TTM_KEY_PAGE_UP)
        view->detail_first -= view->detail_first < page ? view->detail_first : page;
    else if (key == TTM_KEY_HOME)
        view->detail_first = 0;
    else if (key == TTM_KEY_END)
        view->detail_first = SIZE_MAX / 2;
    else
        return false;
    return true;
}

/* The bank of the next or the last device that the selected origin is on, if there is one. */
static void move_bank(struct ttm_view *view, uint32_t key)
{
    const struct ttm_view_list *list = &view->origin_list;

    if (list->selected >= view->line_count)
        return;
    const struct ttm_origin_group *group = view->lines[list->selected].group;
    const int step = key == TTM_KEY_RIGHT ? 1 : -1;
    for (int at = bank_device_of(view, group) + step; at >= 0 && at < TTM_DEVICE_COUNT;
         at += step) {
        if (ttm_origin_group_is_on(group, (unsigned)at)) {
            view->wanted_device = (uint16_t)at;
            return;
        }
    }
}

static void move(struct ttm_view *view, const struct ttm_origins_source *source, uint32_t key)
{
    switch (view->settings.page) {
    case TTM_PAGE_DEVICES:
        if (key == TTM_KEY_LEFT || key == TTM_KEY_RIGHT) {
            move_devices(view, key);
            break;
        }
        move_list(&view->process_list, key);
        view->process_list.key =
            view->process_list.selected < view->process_count
                ? process_key(view->processes[view->process_list.selected].process)
                : 0;
        break;
    case TTM_PAGE_CHARTS:
        move_devices(view, key);
        break;
    case TTM_PAGE_ORIGINS:
        if (key == TTM_KEY_LEFT || key == TTM_KEY_RIGHT) {
            move_bank(view, key);
            (void)look_closer(view, source);
            break;
        }
        if (view->has_detail && move_detail(view, key))
            break;
        view->detail_first = 0;
        move_list(&view->origin_list, key);
        view->origin_list.key = view->origin_list.selected < view->line_count
                                    ? view->lines[view->origin_list.selected].group->key
                                    : 0;
        (void)look_closer(view, source);
        break;
    case TTM_PAGE_COUNT:
        break;
    }
}

/* While the filter is typed, every character belongs to it. */
static void type_filter(struct ttm_view *view, const struct ttm_origins_source *source,
                        uint32_t key)
{
    const size_t length = strlen(view->filter);

    if (key == TTM_KEY_ENTER)
        view->is_typing = false;
    else if (key == TTM_KEY_ESCAPE) {
        view->is_typing = false;
        view->filter[0] = '\0';
    } else if (key == TTM_KEY_BACKSPACE) {
        if (length > 0)
            view->filter[length - 1] = '\0';
        else
            view->is_typing = false;
    } else if (key >= 0x20 && key < 0x7f && length + 1 < sizeof(view->filter)) {
        view->filter[length] = (char)key;
        view->filter[length + 1] = '\0';
    }
    reorder(view, source);
}

static void next_sort(struct ttm_view *view)
{
    struct ttm_view_settings *settings = &view->settings;

    if (settings->page == TTM_PAGE_ORIGINS)
        settings->origin_sort = (settings->origin_sort + 1) % TTM_ORIGIN_SORT_END;
    else
        settings->process_sort = (settings->process_sort + 1) % TTM_PROCESS_SORT_COUNT;
}

static void leave(struct ttm_view *view, const struct ttm_origins_source *source)
{
    if (view->has_detail) {
        view->has_detail = false;
    } else if (view->filter[0]) {
        view->filter[0] = '\0';
        reorder(view, source);
    }
}

static bool type_letter(struct ttm_view *view, const struct ttm_origins_source *source,
                        uint32_t key)
{
    switch (key) {
    case '1':
    case '2':
    case '3':
        view->settings.page = (enum ttm_view_page)(key - '1');
        view->has_detail = false;
        view->first_device = 0;
        return true;
    case '\t':
        view->settings.page = (view->settings.page + 1) % TTM_PAGE_COUNT;
        view->has_detail = false;
        view->first_device = 0;
        return true;
    case '/':
        view->is_typing = view->settings.page != TTM_PAGE_CHARTS;
        return true;
    case 's':
        next_sort(view);
        reorder(view, source);
        return true;
    case 'r':
        view->settings.is_reversed[view->settings.page] ^= true;
        reorder(view, source);
        return true;
    case 'p':
    case ' ':
        view->is_paused = !view->is_paused;
        return true;
    case '+':
    case '=':
        move_window(view, 1);
        return true;
    case '-':
        move_window(view, -1);
        return true;
    case 'z':
        view->has_whole_bank = !view->has_whole_bank;
        return view->settings.page == TTM_PAGE_ORIGINS;
    case '?':
    case 'h':
        view->has_help = true;
        return true;
    case 'q':
    case 'Q':
        view->has_ended = !view->has_detail;
        view->has_detail = false;
        return true;
    default:
        return false;
    }
}

bool ttm_view_key(struct ttm_view *view, const struct ttm_origins_source *source, uint32_t key)
{
    if (view->has_help) { /* any key leaves it */
        view->has_help = false;
        return true;
    }
    if (view->is_typing && (key < TTM_KEY_UP || key >= TTM_KEY_ENTER)) {
        type_filter(view, source, key);
        return true;
    }
    if (key >= TTM_KEY_UP && key <= TTM_KEY_END) {
        move(view, source, key);
        return true;
    }
    if (key == TTM_KEY_ENTER) {
        view->detail_first = 0;
        view->has_detail =
            view->settings.page == TTM_PAGE_ORIGINS && !view->has_detail && view->line_count > 0;
        return true;
    }
    if (key == TTM_KEY_ESCAPE) {
        leave(view, source);
        return true;
    }
    return type_letter(view, source, key);
}
