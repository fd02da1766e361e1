/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/machine.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "cli/ask.h"
#include "cli/command.h"
#include "model/board.h"

#define TELEMETRY_WAIT_MS 1000

/* ---- usage ---- */

void ttm_usage_add_totals(struct ttm_usage *usage, const struct ttm_device_totals *totals,
                          enum ttm_region region)
{
    const struct ttm_totals *own = &totals->region[region];

    if (!usage->is_known)
        usage->has_footprint = true;
    usage->is_known = true;
    usage->bytes += own->bytes;
    usage->footprint_bytes += own->footprint_bytes;
    usage->count += own->count;
    usage->used_bytes += ttm_device_used(totals, region);
    if (region == TTM_REGION_CB)
        usage->registered_bytes += totals->cb.registered_bytes;
}

void ttm_usage_put_cb_json(struct ttm_json *json, const struct ttm_usage *usage)
{
    if (!usage->has_footprint) {
        ttm_json_put_null(json, "resident_bytes");
        ttm_json_put_null(json, "registered_bytes");
        return;
    }
    ttm_json_put_u64(json, "resident_bytes", usage->used_bytes);
    ttm_json_put_u64(json, "registered_bytes", usage->registered_bytes);
}

void ttm_usage_add_runtime(struct ttm_usage *usage, uint64_t bytes)
{
    /* Nothing has no footprint. */
    usage->has_footprint = (usage->has_footprint || !usage->is_known) && bytes == 0;
    usage->is_known = true;
    usage->bytes += bytes;
    usage->runtime_bytes += bytes;
    usage->used_bytes += bytes;
}

enum ttm_region ttm_machine_region(enum ttm_upstream_region region)
{
    static const enum ttm_region regions[TTM_UPSTREAM_REGION_COUNT] = {
        [TTM_UPSTREAM_DRAM] = TTM_REGION_DRAM,
        [TTM_UPSTREAM_L1] = TTM_REGION_L1,
        [TTM_UPSTREAM_L1_SMALL] = TTM_REGION_L1_SMALL,
        [TTM_UPSTREAM_TRACE] = TTM_REGION_TRACE,
        [TTM_UPSTREAM_CB] = TTM_REGION_CB,
    };

    return regions[region];
}

/* ---- finding things ---- */

const struct ttm_answer_process *ttm_machine_tracked(const struct ttm_machine *machine, int32_t pid)
{
    for (size_t a = 0; a < machine->answer_count; a++) {
        const struct ttm_answer *answer = &machine->answers[a];
        for (size_t p = 0; p < answer->process_count; p++) {
            const struct ttm_process_row *row = &answer->processes[p].row;
            if (row->pid == pid && !row->is_disabled)
                return &answer->processes[p];
        }
    }
    return NULL;
}

struct ttm_machine_device *ttm_machine_by_metal_id(const struct ttm_machine *machine, int metal_id)
{
    for (size_t i = 0; i < machine->device_count; i++) {
        if (machine->devices[i].metal_id == metal_id)
            return &machine->devices[i];
    }
    return NULL;
}

struct ttm_machine_device *ttm_machine_by_id(const struct ttm_machine *machine, unsigned id)
{
    for (size_t i = 0; i < machine->device_count; i++) {
        if (machine->devices[i].id == id)
            return &machine->devices[i];
    }
    return NULL;
}

/* ---- whose file of the runtime it is ---- */

/* How the name of a file says which chip it is about; the runtime's way has changed over time. */
enum match {
    MATCH_NONE,
    MATCH_CARD,   /* a chip of that card */
    MATCH_CHIP,   /* that very chip */
    MATCH_REMOTE, /* the second chip of that n300 */
};

#define N300_LOCAL 2 /* in the upper half of its id */
#define N300_REMOTE 3

static enum match match_file(const struct ttm_chip *chip, uint64_t unique_id)
{
    const uint64_t board = chip->board_id.number;

    if (chip->asic_id.validity == TTM_VALID && unique_id == chip->asic_id.number)
        return MATCH_CHIP;
    if (chip->board_id.validity != TTM_VALID || board == 0)
        return MATCH_NONE;
    /* The serial number alone, or with the place on the card behind it. */
    if (unique_id == board || unique_id >> 5 == board || unique_id >> 1 == board ||
        unique_id >> 8 == board)
        return MATCH_CARD;
    const uint64_t short_board = (board >> 4 & 0xf0000000) | (board & 0x0fffffff);
    if ((unique_id & 0xffffffff) != short_board)
        return MATCH_NONE;
    return unique_id >> 32 == N300_REMOTE  ? MATCH_REMOTE
           : unique_id >> 32 == N300_LOCAL ? MATCH_CHIP
                                           : MATCH_CARD;
}

struct ttm_machine_device *ttm_machine_of_file(const struct ttm_machine *machine,
                                               const struct ttm_upstream_file *file)
{
    struct ttm_machine_device *found = NULL;
    size_t candidates = 0;

    /* Without cards the device is simulated, and has the number that TT-Metal gave it. */
    if (machine->telemetry.count == 0)
        return ttm_machine_by_metal_id(machine, file->device_id);
    for (size_t i = 0; i < machine->device_count; i++) {
        struct ttm_machine_device *device = &machine->devices[i];
        const enum match match =
            device->chip ? match_file(&device->chip->chip, file->unique_id) : MATCH_NONE;
        if (match == (device->is_remote ? MATCH_REMOTE : MATCH_CHIP))
            return device;
        if (match != MATCH_CARD)
            continue;
        /* A card with several chips: the one of them that the program calls so. */
        if (device->metal_id == file->device_id)
            return device;
        found = device;
        candidates++;
    }
    return candidates == 1 ? found : NULL;
}

/* ---- the list of devices ---- */

static struct ttm_machine_device *add_device(struct ttm_machine *machine)
{
    const size_t count = machine->device_count;

    if ((count & (count - 1)) == 0) {
        void *grown =
            realloc(machine->devices, (count ? count * 2 : 1) * sizeof(machine->devices[0]));
        if (!grown)
            return NULL;
        machine->devices = grown;
    }
    machine->devices[count] = (struct ttm_machine_device){.metal_id = -1, .arch = "unknown"};
    machine->device_count++;
    return &machine->devices[count];
}

static void fill_from_board(struct ttm_machine_device *device)
{
    const struct ttm_board *board = ttm_board_find(device->board);

    for (unsigned r = 0; board && r < TTM_REGION_COUNT; r++)
        device->capacity_bytes[r] = ttm_board_capacity(board, (enum ttm_region)r);
}

static int add_chip(struct ttm_machine *machine, const struct ttm_telemetry_chip *chip, unsigned id,
                    int metal_id, bool is_remote)
{
    struct ttm_machine_device *device = add_device(machine);

    if (!device)
        return -ENOMEM;
    device->id = id;
    device->metal_id = metal_id;
    device->is_remote = is_remote;
    device->chip = chip;
    device->arch = chip->chip.arch;
    memcpy(device->board, chip->chip.board, sizeof(device->board));
    fill_from_board(device);
    return 0;
}

static int compare_metal_ids(const void *a, const void *b)
{
    const struct ttm_telemetry_chip *const *x = a, *const *y = b;

    return (*x)->metal_id - (*y)->metal_id;
}

/* The second chips of n300 cards have no PCI function; TT-Metal numbers them behind all others. */
static int add_remote_chips(struct ttm_machine *machine)
{
    const struct ttm_telemetry_view *view = &machine->telemetry;
    const struct ttm_telemetry_chip *cards[TTM_TELEMETRY_CHIPS_MAX];
    size_t count = 0;
    int next_id = 0, r = 0;
    unsigned free_id = 0;

    for (size_t i = 0; i < view->count; i++) {
        const struct ttm_telemetry_chip *chip = &view->chips[i];
        next_id += chip->metal_id >= 0;
        if (chip->chip.number >= free_id)
            free_id = chip->chip.number + 1;
        if (chip->metal_id >= 0 && strcmp(chip->chip.board, "n300") == 0)
            cards[count++] = chip;
    }
    if (count == 0)
        return 0;
    qsort(cards, count, sizeof(void *), compare_metal_ids);
    for (size_t i = 0; r == 0 && i < count; i++)
        r = add_chip(machine, cards[i], free_id++, next_id++, true);
    return r;
}

/* A device that is not on the list: of a simulated run, or where we do not see /sys. */
static struct ttm_machine_device *find_or_add(struct ttm_machine *machine, int metal_id)
{
    struct ttm_machine_device *device = ttm_machine_by_metal_id(machine, metal_id);

    if (device || metal_id < 0 || metal_id >= TTM_DEVICE_COUNT)
        return device;
    device = add_device(machine);
    if (device) {
        device->metal_id = metal_id;
        device->id = (unsigned)metal_id;
    }
    return device;
}

/* What the allocator does not get of the cores whose L1 it has. */
static uint64_t reserved_l1(const struct ttm_device_row *row)
{
    const struct ttm_board *board = ttm_board_of_arch(row->arch);
    const uint64_t banks = row->bank_count[TTM_REGION_L1];
    const uint64_t given =
        row->capacity_bytes[TTM_REGION_L1] + row->capacity_bytes[TTM_REGION_L1_SMALL];
    const uint64_t all = board ? banks * board->l1_per_core_bytes : 0;

    return banks > 0 && all > given ? all - given : 0;
}

bool ttm_machine_is_other(const struct ttm_machine_device *device, const struct ttm_device_row *row)
{
    return device->chip && row->arch != TTM_ARCH_UNKNOWN && strcmp(device->arch, "unknown") != 0 &&
           strcmp(device->arch, ttm_arch_name(row->arch)) != 0;
}

/* What a program has told of its device is better than the table of boards. */
static void take_sizes(struct ttm_machine_device *device, const struct ttm_device_row *row)
{
    if (reserved_l1(row) > 0)
        device->l1_reserved_bytes = reserved_l1(row);
    for (unsigned r = 0; r < TTM_REGION_COUNT; r++) {
        if (row->capacity_bytes[r] > 0)
            device->capacity_bytes[r] = row->capacity_bytes[r];
    }
}

static int add_answer(struct ttm_machine *machine, const struct ttm_answer *answer)
{
    for (size_t i = 0; i < answer->device_count; i++) {
        const struct ttm_device_row *row = &answer->devices[i];
        struct ttm_machine_device *device = find_or_add(machine, row->id);
        if (!device)
            return -ENOMEM;
        if (row->arch != TTM_ARCH_UNKNOWN && strcmp(device->arch, "unknown") == 0)
            device->arch = ttm_arch_name(row->arch);
        if (!device->board[0])
            (void)snprintf(device->board, sizeof(device->board), "%.31s", row->board);
        if (!ttm_machine_is_other(device, row))
            take_sizes(device, row);
        for (unsigned r = 0; r < TTM_REGION_COUNT; r++)
            ttm_usage_add_totals(&device->regions[r], &row->totals, r);
    }
    return 0;
}

/* A server that has heard nothing of a device knows that nothing is tracked there. */
static void note_silence(struct ttm_machine *machine)
{
    static const struct ttm_device_totals nothing;

    for (size_t i = 0; machine->answer_count > 0 && i < machine->device_count; i++) {
        for (unsigned r = 0; r < TTM_REGION_COUNT; r++)
            ttm_usage_add_totals(&machine->devices[i].regions[r], &nothing, r);
    }
}

/* Of files that programs have left behind, no device is made. */
static bool is_simulated_here(const struct ttm_machine *machine,
                              const struct ttm_upstream_file *file)
{
    if (machine->telemetry.count > 0 || file->device_id < 0 || file->device_id >= TTM_DEVICE_COUNT)
        return false;
    for (size_t p = 0; p < file->process_count; p++) {
        if (!file->processes[p].is_stale)
            return true;
    }
    return false;
}

static int add_file(struct ttm_machine *machine, const struct ttm_upstream_file *file)
{
    if (is_simulated_here(machine, file) && !find_or_add(machine, file->device_id))
        return -ENOMEM;
    struct ttm_machine_device *device = ttm_machine_of_file(machine, file);
    for (size_t p = 0; device && p < file->process_count; p++) {
        const struct ttm_upstream_process *process = &file->processes[p];
        if (process->is_stale || ttm_machine_tracked(machine, process->pid))
            continue;
        for (unsigned r = 0; r < TTM_UPSTREAM_REGION_COUNT; r++)
            ttm_usage_add_runtime(&device->regions[ttm_machine_region(r)],
                                  process->totals.bytes[r]);
    }
    return 0;
}

static int compare_ids(const void *a, const void *b)
{
    const struct ttm_machine_device *x = a, *y = b;

    return x->id != y->id ? (x->id < y->id ? -1 : 1) : x->is_remote - y->is_remote;
}

int ttm_machine_join(struct ttm_machine *machine)
{
    const struct ttm_telemetry_view *view = &machine->telemetry;
    int r = 0;

    for (size_t i = 0; r == 0 && i < view->count; i++)
        r = add_chip(machine, &view->chips[i], view->chips[i].chip.number, view->chips[i].metal_id,
                     false);
    if (r == 0)
        r = add_remote_chips(machine);
    for (size_t i = 0; r == 0 && i < machine->answer_count; i++)
        r = add_answer(machine, &machine->answers[i]);
    note_silence(machine);
    for (size_t i = 0; r == 0 && i < machine->upstream.count; i++)
        r = add_file(machine, &machine->upstream.files[i]);
    if (machine->device_count > 0)
        qsort(machine->devices, machine->device_count, sizeof(machine->devices[0]), compare_ids);
    return r;
}

/* ---- reading all of it ---- */

const char *ttm_machine_root(void)
{
    const char *root = getenv("TTMEM_ROOT");

    return root ? root : "";
}

static int read_telemetry(const char *root, struct ttm_telemetry_view *ret)
{
    struct ttm_telemetry *telemetry;
    int r = ttm_telemetry_new(root, 0, &telemetry);

    if (r < 0)
        return r;
    (void)ttm_telemetry_wait(telemetry, TELEMETRY_WAIT_MS);
    r = ttm_telemetry_look(telemetry, ret);
    ttm_telemetry_free(telemetry);
    return r;
}

static int ask_totals(struct ttm_machine *machine, struct ttm_connection *conn)
{
    struct ttm_answer *answer = &machine->answers[machine->answer_count];

    ttm_answer_init(answer);
    const int r = ttm_answer_ask(conn, TTM_FRAME_GET_TOTALS, answer);
    if (r == 0)
        machine->answer_count++;
    else
        ttm_answer_done(answer);
    return r;
}

/* The one that was asked for has to answer. */
static int ask_chosen(struct ttm_machine *machine, const char *path)
{
    struct ttm_connection conn;
    int status = ttm_ask_connect(path, &conn);

    if (status == TTM_EXIT_OK) {
        const int r = ask_totals(machine, &conn);
        if (r < 0)
            status = ttm_ask_failed(&conn, r);
    }
    ttm_connection_close(&conn);
    return status;
}

static int ask_at(struct ttm_machine *machine, const char *path, struct ttm_connection *conn)
{
    int r = ttm_connection_open(conn, path);

    if (r == 0)
        r = ask_totals(machine, conn);
    ttm_connection_close(conn);
    return r;
}

static void ask_found(struct ttm_machine *machine, const char *path)
{
    struct ttm_connection conn;
    const int r = ask_at(machine, path, &conn);

    /* None, or one that has ended just now, is no news: these commands work without. */
    if (r < 0 && r != -ENOENT && r != -ECONNREFUSED && r != -EPIPE)
        ttm_log("the server at '%s' does not answer: %s; what it knows is left out", path,
                r == -EREMOTEIO ? conn.why : strerror(-r));
}

static int ask_servers(struct ttm_machine *machine, const char *socket_path)
{
    const char *chosen = getenv("TTMEM_SOCKET");
    struct ttm_places places;

    if (socket_path)
        return ask_chosen(machine, socket_path);
    if (chosen && chosen[0]) {
        ask_found(machine, chosen);
        return TTM_EXIT_OK;
    }
    if (ttm_locate_servers(&places) < 0) {
        ttm_log("cannot look for a server: memory is short");
        return TTM_EXIT_FAILED;
    }
    for (size_t i = 0; i < places.count && i < TTM_MACHINE_SERVERS_MAX; i++)
        ask_found(machine, places.paths[i]);
    ttm_places_done(&places);
    return TTM_EXIT_OK;
}

int ttm_machine_read(const char *root, const char *socket_path, struct ttm_machine *ret)
{
    *ret = (struct ttm_machine){0};
    const int status = ask_servers(ret, socket_path);
    if (status != TTM_EXIT_OK)
        return status;
    int r = read_telemetry(root, &ret->telemetry);
    if (r == 0)
        r = ttm_upstream_read(root, &ret->upstream);
    if (r == 0)
        r = ttm_machine_join(ret);
    if (r < 0) {
        ttm_log("cannot look at the devices: %s", strerror(-r));
        return TTM_EXIT_FAILED;
    }
    return TTM_EXIT_OK;
}

/* ---- again and again ---- */

static bool is_silent(const struct ttm_machine *machine, const char *path)
{
    for (size_t i = 0; i < machine->silent_count; i++) {
        if (strcmp(machine->silent_paths[i], path) == 0)
            return true;
    }
    return false;
}

/* A command that is stopped (Ctrl-Z) has a server that does not answer: wait for it once. */
static void ask_quietly(struct ttm_machine *machine, const char *path)
{
    struct ttm_connection conn;

    if (machine->answer_count == TTM_MACHINE_SERVERS_MAX || is_silent(machine, path))
        return;
    if (ask_at(machine, path, &conn) == -ETIMEDOUT &&
        machine->silent_count < TTM_MACHINE_SILENT_MAX)
        (void)snprintf(machine->silent_paths[machine->silent_count++], TTM_SOCKET_PATH_SIZE, "%s",
                       path);
}

static int ask_all(struct ttm_machine *machine)
{
    const char *chosen = getenv("TTMEM_SOCKET");
    struct ttm_places places;
    bool is_chosen_found = false;

    if (ttm_locate_servers(&places) < 0)
        return -ENOMEM;
    for (size_t i = 0; i < places.count; i++) {
        ask_quietly(machine, places.paths[i]);
        is_chosen_found |= chosen && strcmp(chosen, places.paths[i]) == 0;
    }
    if (chosen && chosen[0] && !is_chosen_found)
        ask_quietly(machine, chosen);
    ttm_places_done(&places);
    return 0;
}

static void forget_answers(struct ttm_machine *machine)
{
    for (size_t i = 0; i < machine->answer_count; i++)
        ttm_answer_done(&machine->answers[i]);
    machine->answer_count = 0;
    free(machine->devices);
    machine->devices = NULL;
    machine->device_count = 0;
}

int ttm_machine_renew(const char *root, struct ttm_machine *machine)
{
    forget_answers(machine);
    int r = ask_all(machine);
    if (r == 0 && machine->telemetry.count == 0)
        r = read_telemetry(root, &machine->telemetry);
    return r < 0 ? r : ttm_machine_join(machine);
}

void ttm_machine_done(struct ttm_machine *machine)
{
    forget_answers(machine);
    ttm_upstream_done(&machine->upstream);
    ttm_telemetry_view_done(&machine->telemetry);
    *machine = (struct ttm_machine){0};
}
