/* SPDX-License-Identifier: Apache-2.0 */
#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "analysis/frame_names.h"
#include "analysis/history.h"
#include "base/clock.h"
#include "base/json.h"
#include "base/log.h"
#include "base/seed.h"
#include "cli/ask.h"
#include "cli/command.h"
#include "cli/filter_words.h"
#include "cli/options.h"
#include "cli/recording_file.h"
#include "cli/terminal.h"
#include "cli/words_json.h"
#include "symbols/symbols.h"

enum { OPTION_ADDRESS = 256, OPTION_REGION };

static const struct ttm_option options[] = {
    {.id = OPTION_ADDRESS, .name = "address", .arg = "ADDR", .help = "which: 0x18b20, or 101152"},
    TTM_OPTION_DEVICE,
    {.id = OPTION_REGION,
     .name = "region",
     .arg = "REGION",
     .help = "only DRAM, L1, CB, ...",
     .choices = TTM_REGION_CHOICES},
    TTM_OPTION_JSON,
    TTM_OPTION_HELP_ROW,
    {0},
};

struct wish {
    struct ttm_history_options history;
    bool has_address;
    bool is_json;
};

/* ---- JSON ---- */

static void put_life(struct ttm_json *json, const struct ttm_history *history,
                     const struct ttm_history_life *life)
{
    const uint64_t offset_ns = (uint64_t)history->info.wall_offset_ns;

    ttm_json_object_begin(json);
    ttm_json_put_i64(json, "pid", life->pid);
    ttm_json_put_u64(json, "id", life->life.id);
    ttm_json_key(json, "device_ids");
    ttm_json_array_begin(json);
    for (uint16_t i = 0; i < life->device_count; i++)
        ttm_json_u64(json, life->devices[i]);
    ttm_json_array_end(json);
    ttm_json_put_string(json, "region", ttm_region_name(life->life.region));
    ttm_json_put_u64(json, "address", life->life.address);
    ttm_json_put_u64(json, "bytes", life->life.bytes);
    ttm_json_put_u64(json, "footprint_bytes", life->life.footprint_bytes);
    if (life->life.banks > 0)
        ttm_json_put_u64(json, "banks", life->life.banks);
    else
        ttm_json_put_null(json, "banks");
    ttm_json_put_u64(json, "birth_ns", life->birth_ns + offset_ns);
    if (life->has_ended) {
        ttm_json_put_u64(json, "end_ns", life->end_ns + offset_ns);
        ttm_json_put_string(json, "end", ttm_history_end_name(life->how));
    } else {
        ttm_json_put_null(json, "end_ns");
        ttm_json_put_null(json, "end");
    }
    ttm_json_put_bool(json, "overlap", life->is_overlap);
    ttm_words_json(json, &life->words, false);
    ttm_json_object_end(json);
}

static void put_json(const struct ttm_history *history, uint64_t address, struct ttm_text *out)
{
    struct ttm_json json;

    ttm_json_init(&json, out);
    ttm_json_object_begin(&json);
    ttm_json_put_string(&json, "schema", "tt-mem/history/1");
    ttm_json_put_u64(&json, "address", address);
    ttm_json_put_bool(&json, "recording_complete", history->info.is_complete);
    ttm_json_key(&json, "lives");
    ttm_json_array_begin(&json);
    for (uint64_t i = 0; i < history->count; i++)
        put_life(&json, history, &history->lives[i]);
    ttm_json_array_end(&json);
    ttm_json_object_end(&json);
    ttm_text_append(out, "\n");
}

/* ---- text ---- */

static const char *end_words(const struct ttm_history_life *life)
{
    static const char *const words[TTM_ENDED_COUNT] = {
        [TTM_ENDED_FREED] = "freed",
        [TTM_ENDED_REPLACED] = "replaced",
        [TTM_ENDED_DEVICE_CLOSED] = "closed",
        [TTM_ENDED_ALLOCATOR_CLOSED] = "closed",
        [TTM_ENDED_PROGRAM_ENDED] = "with program",
        [TTM_ENDED_PROCESS_ENDED] = "at exit",
        [TTM_ENDED_UNHEARD] = "unheard",
    };

    return !life->has_ended ? "live" : life->how < TTM_ENDED_COUNT ? words[life->how] : "?";
}

static void put_devices(const struct ttm_history_life *life, char ret[16])
{
    if (life->device_count == 0)
        (void)snprintf(ret, 16, "?");
    else if (life->device_count == 1)
        (void)snprintf(ret, 16, "%u", life->devices[0]);
    else
        (void)snprintf(ret, 16, "%u-%u", life->devices[0], life->devices[life->device_count - 1]);
}

static void put_origin(const struct ttm_origin_words *words, struct ttm_text *out)
{
    if (words->python_count > 0) {
        ttm_text_append_safe(out, ttm_base_name(words->python[0].file));
        ttm_text_format(out, ":%u ", words->python[0].line);
        ttm_text_append_safe(out, words->python[0].function);
    } else if (words->native_count > 0) {
        ttm_text_append_safe(out, words->native[words->native_place]);
    }
    if (words->operation[0] != '\0') {
        ttm_text_append(out, words->python_count + words->native_count > 0 ? " (" : "(");
        ttm_text_append_safe(out, words->operation);
        ttm_text_append(out, ")");
    }
    if (words->name[0] != '\0') {
        ttm_text_append(out, " \"");
        ttm_text_append_safe(out, words->name);
        ttm_text_append(out, "\"");
    }
}

static void put_row(const struct ttm_history *history, const struct ttm_history_life *life,
                    const struct ttm_terminal *terminal, struct ttm_text *out)
{
    const uint64_t since_ns =
        life->birth_ns > history->first_ns ? life->birth_ns - history->first_ns : 0;
    const uint64_t end_ns = life->has_ended ? life->end_ns : history->info.last_ns;
    const uint64_t span_ns = end_ns > life->birth_ns ? end_ns - life->birth_ns : 0;
    char span[TTM_NUMBER_SIZE], bytes[TTM_NUMBER_SIZE], devices[16];

    put_devices(life, devices);
    if (history->is_untimed)
        ttm_text_format(out, "%12s %10s", "?", "?");
    else
        ttm_text_format(out, "%10.3f s %10s", (double)since_ns / 1e9,
                        span_ns < TTM_NS_PER_MS ? "< 1 ms" : ttm_format_duration(span_ns, span));
    ttm_text_format(out, " %10s  %-6s %-4s ", ttm_format_bytes(life->life.bytes, bytes),
                    ttm_region_name(life->life.region), devices);
    const bool is_odd = life->is_overlap || (life->has_ended && life->how == TTM_ENDED_REPLACED);
    ttm_terminal_colour(terminal, out, is_odd ? TTM_RED : TTM_PLAIN);
    ttm_text_format(out, "%-9s", end_words(life));
    ttm_terminal_colour(terminal, out, TTM_PLAIN);
    ttm_text_append(out, " ");
    put_origin(&life->words, out);
    if (life->is_inside)
        ttm_text_format(out, " from 0x%llx", (unsigned long long)life->life.address);
    if (life->is_overlap)
        ttm_text_append(out, " overlaps");
    ttm_text_append(out, "\n");
}

static void put_sums(const struct ttm_history *history, const struct wish *wish, const char *path,
                     struct ttm_text *out)
{
    uint64_t freed = 0, replaced = 0, live = 0, overlaps = 0;
    char number[TTM_NUMBER_SIZE];

    for (uint64_t i = 0; i < history->count; i++) {
        const struct ttm_history_life *life = &history->lives[i];
        freed += life->has_ended && life->how == TTM_ENDED_FREED;
        replaced += life->has_ended && life->how == TTM_ENDED_REPLACED;
        live += !life->has_ended;
        overlaps += life->is_overlap;
    }
    ttm_text_format(out, "0x%llx", (unsigned long long)wish->history.address);
    ttm_filter_words(&wish->history.devices, wish->history.region, out);
    ttm_text_append(out, " in ");
    ttm_text_append_safe(out, path);
    ttm_text_format(out, ": %s %s", ttm_format_count(history->count, number),
                    history->count == 1 ? "life" : "lives");
    ttm_text_format(out, ", %s freed", ttm_format_count(freed, number));
    if (replaced > 0)
        ttm_text_format(out, ", %s replaced without a free", ttm_format_count(replaced, number));
    if (overlaps > 0)
        ttm_text_format(out, ", %s on what was still there", ttm_format_count(overlaps, number));
    if (live > 0)
        ttm_text_format(out, ", %s live at the end", ttm_format_count(live, number));
    ttm_text_append(out, "\n");
}

static void put_text(const struct ttm_history *history, const struct wish *wish, const char *path,
                     const struct ttm_terminal *terminal, struct ttm_text *out)
{
    struct ttm_text flaws;

    put_sums(history, wish, path, out);
    ttm_text_init(&flaws);
    ttm_recording_flaws(&history->info, &flaws);
    if (flaws.length > 0)
        ttm_text_format(out, "  %s\n", ttm_text_string(&flaws));
    out->failed |= flaws.failed;
    ttm_text_done(&flaws);
    if (history->count == 0)
        return;
    ttm_terminal_colour(terminal, out, TTM_DIM);
    ttm_text_append(out, "        born      lived       size  region dev  ended     origin\n");
    ttm_terminal_colour(terminal, out, TTM_PLAIN);
    for (uint64_t i = 0; i < history->count; i++)
        put_row(history, &history->lives[i], terminal, out);
    if (history->left_out > 0)
        ttm_text_format(out, "  … %llu more are not shown\n",
                        (unsigned long long)history->left_out);
}

/* ---- the command ---- */

static int print(const struct ttm_history *history, const struct wish *wish, const char *path)
{
    const struct ttm_terminal terminal = ttm_terminal_of(STDOUT_FILENO);
    struct ttm_text whole, out;

    ttm_text_init(&whole);
    ttm_text_init(&out);
    if (wish->is_json)
        put_json(history, wish->history.address, &out);
    else
        put_text(history, wish, path, &terminal, &whole);
    if (!wish->is_json)
        ttm_terminal_fit(&terminal, &whole, &out);
    out.failed |= whole.failed;
    const int r = ttm_terminal_print(&out);
    ttm_text_done(&whole);
    ttm_text_done(&out);
    return r < 0 ? ttm_ask_unwritten(r) : TTM_EXIT_OK;
}

/* Whether each device that was asked for is there; says so when one is not. */
static bool are_devices_there(const struct ttm_history *history, const struct wish *wish,
                              const char *path)
{
    const struct ttm_device_filter *devices = &wish->history.devices;

    for (unsigned id = 0; !devices->is_all && id < TTM_DEVICE_COUNT; id++) {
        if (!ttm_device_filter_has(devices, id) || history->has_device[id])
            continue;
        ttm_log("there is no device %u in '%s'", id, path);
        return false;
    }
    return true;
}

static int show(const char *path, struct wish *wish)
{
    struct ttm_symbols *symbols = ttm_symbols_new(NULL);
    struct ttm_recording *recording;
    struct ttm_history history = {0};

    wish->history.namer = ttm_frame_names(symbols);
    wish->history.seed = ttm_seed_random();
    int r = ttm_recording_open(path, &recording);
    if (r == 0) {
        r = ttm_history_read(recording, &wish->history, &history);
        ttm_recording_close(recording);
    }
    int status = TTM_EXIT_FAILED;
    if (r < 0)
        status = ttm_recording_failed(path, r);
    else if (are_devices_there(&history, wish, path))
        status = print(&history, wish, path);
    ttm_history_done(&history);
    ttm_symbols_free(symbols);
    return status;
}

static int parse_address(const struct ttm_options *parsed, struct wish *wish)
{
    char *end = NULL;

    errno = 0;
    wish->history.address = strtoull(parsed->value, &end, 0);
    wish->has_address = true;
    if (errno != 0 || end == parsed->value || *end != '\0' ||
        !isdigit((unsigned char)*parsed->value))
        return ttm_options_complain(parsed, "'%s' is no address", parsed->value);
    return 0;
}

static int take_option(const struct ttm_options *parsed, int id, struct wish *wish)
{
    if (id == OPTION_ADDRESS)
        return parse_address(parsed, wish);
    if (id == 'd')
        return ttm_options_devices(parsed, &wish->history.devices);
    if (id == 'j')
        wish->is_json = true;
    if (id != OPTION_REGION)
        return 0;
    wish->history.region = ttm_region_parse(parsed->value);
    return wish->history.region < 0
               ? ttm_options_complain(parsed, "'%s' is no region", parsed->value)
               : 0;
}

static int run(int argc, char **argv)
{
    struct wish wish = {.history = {.devices.is_all = true, .region = -1}};
    struct ttm_options parsed;
    int id, r = 0;

    ttm_options_init(&parsed, &ttm_command_history, argc, argv);
    while (r == 0 && (id = ttm_options_next(&parsed)) > 0)
        r = take_option(&parsed, id, &wish);
    if (r < 0 || id != TTM_OPTION_END)
        return r == 0 && id == TTM_OPTION_HELP ? TTM_EXIT_OK : TTM_EXIT_USAGE;
    char **rest = ttm_options_rest(&parsed);
    if (!rest[0] || rest[1] || !wish.has_address) {
        (void)ttm_options_complain(&parsed, !rest[0]  ? "which recording?"
                                            : rest[1] ? "one recording, please"
                                                      : "which --address?");
        return TTM_EXIT_USAGE;
    }
    return show(rest[0], &wish);
}

const struct ttm_command ttm_command_history = {
    .name = "history",
    .synopsis = "FILE --address ADDR [-d LIST] [--region REGION] [--json]",
    .summary = "The life story of one address: every birth and end, in order.",
    .details = "An address is reused as soon as it is free; DRAM and L1 have the same numbers.",
    .options = options,
    .run = run,
    .takes_operands = true,
};
