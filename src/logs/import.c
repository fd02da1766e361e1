/* SPDX-License-Identifier: Apache-2.0 */
#include "logs/import.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/bytes.h"
#include "logs/debug_block.h"
#include "logs/importing.h"
#include "logs/scan.h"
#include "logs/server_line.h"

enum ttm_log_format ttm_log_recognise(const char *text, size_t length)
{
    struct ttm_scan scan = {text, text + length}, line;
    struct ttm_server_line event;

    while (ttm_scan_line(&scan, &line)) {
        const size_t n = ttm_scan_left(&line);
        if (ttm_debug_block_is_title(line.at, n))
            return TTM_LOG_FORMAT_DEBUG;
        if (ttm_server_line_decode(line.at, n, &event) > 0)
            return TTM_LOG_FORMAT_SERVER;
    }
    return TTM_LOG_FORMAT_NONE;
}

/* ---- notes ---- */

uint64_t ttm_importing_hash(uint64_t key, const void *bytes, size_t length)
{
    const uint8_t *at = bytes;

    key = ttm_importing_mix(key, length);
    for (; length >= 8; at += 8, length -= 8)
        key = ttm_importing_mix(key, get_le64(at));
    for (; length > 0; at++, length--)
        key = ttm_importing_mix(key, *at);
    return key;
}

static int say_note(struct ttm_import *imp, uint32_t process, uint32_t kind, const uint8_t *bytes,
                    size_t length, uint32_t *ret)
{
    const struct ttm_recorded_note note = {
        .number = ttm_importing_process(imp, process)->last_note + 1,
        .kind = kind,
        .bytes = bytes,
        .length = length,
    };
    const int r = ttm_encoder_note(imp->options.encoder, process, &note);

    if (r < 0)
        return r;
    ttm_importing_process(imp, process)->last_note = note.number;
    *ret = note.number;
    return 0;
}

int ttm_importing_note(struct ttm_import *imp, uint32_t process, uint32_t kind,
                       const uint8_t *bytes, size_t length, uint32_t *ret)
{
    const uint64_t key = ttm_importing_hash(
        ttm_importing_mix(imp->options.seed, (uint64_t)process << 32 | kind), bytes, length);

    if (ttm_u64_map_find(&imp->notes, key, ret))
        return 0;
    const int r = say_note(imp, process, kind, bytes, length, ret);
    return r < 0 ? r : ttm_u64_map_add(&imp->notes, key, *ret);
}

/* ---- processes ---- */

/* "debug.log (imported)". */
static int say_process(struct ttm_import *imp, uint32_t number, int32_t pid)
{
    static const char suffix[] = " (imported)";
    char command[TTM_LOG_NAME_MAX + sizeof(suffix)];
    const size_t whole = strlen(imp->options.name);
    const size_t length = whole < TTM_LOG_NAME_MAX ? whole : TTM_LOG_NAME_MAX;
    const struct ttm_log_note log = {
        .is_untimed = imp->options.format == TTM_LOG_FORMAT_SERVER,
        .name = {imp->options.name, (uint16_t)length},
    };
    const struct ttm_recorded_process seen = {
        .pid = pid,
        .source = TTM_SOURCE_ORIGINAL,
        .command = command,
        .command_length = length + sizeof(suffix) - 1,
    };
    uint32_t note;

    memcpy(command, imp->options.name, length);
    memcpy(command + length, suffix, sizeof(suffix));
    int r = ttm_encoder_process(imp->options.encoder, imp->now_ns, number, &seen);
    if (r == 0) /* the first of its notes, so it is TTM_LOG_NOTE */
        r = say_note(imp, number, TTM_NOTE_LOG, imp->note, ttm_log_note_encode(&log, imp->note),
                     &note);
    return r;
}

int ttm_importing_find(struct ttm_import *imp, int32_t pid, uint32_t *ret)
{
    if (ttm_u64_map_find(&imp->by_pid, (uint32_t)pid, ret))
        return 0;
    if (imp->process_count == imp->process_room) {
        const uint32_t room = imp->process_room ? imp->process_room * 2 : 4;
        struct ttm_importing_process *grown = realloc(imp->processes, room * sizeof(grown[0]));
        if (!grown)
            return -ENOMEM;
        imp->processes = grown;
        imp->process_room = room;
    }
    const uint32_t number = imp->process_count + 1;
    imp->processes[imp->process_count++] =
        (struct ttm_importing_process){.number = number, .pid = pid};
    imp->result.processes++;
    int r = say_process(imp, number, pid);
    if (r == 0)
        r = ttm_u64_map_add(&imp->by_pid, (uint32_t)pid, number);
    *ret = number;
    return r;
}

int ttm_importing_end(struct ttm_import *imp, uint32_t number)
{
    struct ttm_importing_process *process = ttm_importing_process(imp, number);
    const struct ttm_recorded_process_end end = {.how = TTM_PROCESS_VANISHED};
    uint32_t taken;

    if (process->has_ended)
        return 0;
    process->has_ended = true;
    (void)ttm_u64_map_take(&imp->by_pid, (uint32_t)process->pid, &taken);
    /* A line that cannot be read or is not there may have been of any process. */
    process->counters.refused = imp->result.broken;
    process->counters.lost_events = imp->result.lost;
    int r = ttm_encoder_counters(imp->options.encoder, imp->now_ns, number, &process->counters);
    if (r == 0)
        r = ttm_encoder_process_end(imp->options.encoder, imp->now_ns, number, &end);
    return r;
}

/* ---- lives ---- */

int ttm_importing_birth(struct ttm_import *imp, uint32_t process, struct ttm_recorded_life *life)
{
    life->serial = ++ttm_importing_process(imp, process)->last_serial;
    life->process = process;
    life->birth_ns = imp->now_ns;
    life->footprint_bytes = life->bytes;
    imp->result.births++;
    return ttm_encoder_birth(imp->options.encoder, life);
}

int ttm_importing_end_life(struct ttm_import *imp, uint32_t process, uint64_t serial,
                           enum ttm_recorded_how how)
{
    struct ttm_importing_process *of = ttm_importing_process(imp, process);

    imp->result.frees += how == TTM_ENDED_FREED;
    imp->result.replaced += how == TTM_ENDED_REPLACED;
    of->counters.replaced += how == TTM_ENDED_REPLACED;
    return ttm_encoder_end(imp->options.encoder, imp->now_ns, process, serial, how);
}

void ttm_importing_broken(struct ttm_import *imp, uint64_t line)
{
    if (imp->result.broken < TTM_IMPORT_LINES)
        imp->result.broken_lines[imp->result.broken] = line;
    imp->result.broken++;
}

/* ---- all of it ---- */

struct ttm_import *ttm_import_new(const struct ttm_import_options *options)
{
    struct ttm_import *imp = calloc(1, sizeof(*imp));

    if (!imp)
        return NULL;
    imp->options = *options;
    imp->now_ns = options->written_wall_ns;
    imp->line = 1;
    ttm_u64_map_init(&imp->by_pid, options->seed);
    ttm_u64_map_init(&imp->notes, options->seed);
    if (options->format == TTM_LOG_FORMAT_DEBUG)
        imp->debug = ttm_debug_import_new(imp);
    else
        imp->server = ttm_server_import_new(imp);
    if (imp->debug || imp->server)
        return imp;
    ttm_import_free(imp);
    return NULL;
}

void ttm_import_free(struct ttm_import *imp)
{
    if (!imp)
        return;
    ttm_debug_import_free(imp->debug);
    ttm_server_import_free(imp->server);
    ttm_u64_map_done(&imp->by_pid);
    ttm_u64_map_done(&imp->notes);
    free(imp->processes);
    free(imp);
}

/* Whether a block ends with the line that this newline ends: it is empty, or a rule follows. */
static bool is_border(const char *text, const char *newline, const char *end)
{
    const char *line = newline;

    if (line > text && line[-1] == '\r')
        line--;
    if (line > text && line[-1] == '\n')
        return true;
    struct ttm_scan scan = {newline + 1, end}, next;
    return memchr(scan.at, '\n', ttm_scan_left(&scan)) && ttm_scan_line(&scan, &next) &&
           ttm_debug_block_is_rule(next.at, ttm_scan_left(&next));
}

/* How much of the text is whole lines or, of a debug log, whole blocks. */
static size_t whole_part(const struct ttm_import *imp, const char *text, size_t length)
{
    const char *newline = memrchr(text, '\n', length);

    while (imp->debug && newline && !is_border(text, newline, text + length))
        newline = memrchr(text, '\n', (size_t)(newline - text));
    if (newline)
        return (size_t)(newline + 1 - text);
    /* A line or a block as long as that is none; but the window has to go on. */
    return length >= TTM_IMPORT_WINDOW ? length : 0;
}

int ttm_import_feed(struct ttm_import *imp, const char *text, size_t length, bool is_last,
                    size_t *ret_taken)
{
    const size_t whole = is_last ? length : whole_part(imp, text, length);

    *ret_taken = whole;
    return imp->debug ? ttm_debug_import_take(imp->debug, text, whole)
                      : ttm_server_import_take(imp->server, text, whole);
}

int ttm_import_finish(struct ttm_import *imp, struct ttm_import_result *ret)
{
    int r = imp->debug ? ttm_debug_import_finish(imp->debug) : 0;

    for (uint32_t i = 1; r == 0 && i <= imp->process_count; i++)
        r = ttm_importing_end(imp, i);
    *ret = imp->result;
    return r;
}
