/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/log.h"
#include "cli/ask.h"
#include "cli/command.h"
#include "cli/options.h"
#include "cli/recording_file.h"
#include "cli/report_json.h"
#include "cli/report_text.h"
#include "cli/suppress.h"
#include "cli/terminal.h"

enum {
    OPTION_ALL = 256,
    OPTION_FULL_PATHS,
    OPTION_AT,
    OPTION_BY,
    OPTION_SUPPRESSIONS,
    OPTION_REGION,
    OPTION_PID,
    OPTION_MIN_BYTES,
    OPTION_TOP,
    OPTION_SOURCE,
};

static const struct ttm_option options[] = {
    {.id = OPTION_ALL, .name = "all", .help = "show long lists and call stacks whole"},
    {.id = OPTION_AT,
     .name = "at",
     .arg = "MOMENT",
     .help = "what was live: remaining, peak, or at a mark"},
    {.id = OPTION_BY,
     .name = "by",
     .arg = "WHAT",
     .help = "what remains by origin, stack or (missing) frees",
     .choices = "origin stack frees"},
    TTM_OPTION_DEVICE,
    {.id = OPTION_REGION,
     .name = "region",
     .arg = "REGION",
     .help = "only DRAM, L1, CB, ...",
     .choices = TTM_REGION_CHOICES},
    {.id = OPTION_PID, .name = "pid", .arg = "PID", .help = "only this process"},
    {.id = OPTION_MIN_BYTES,
     .name = "min-bytes",
     .arg = "N",
     .help = "only origins that take so much (4096, 64K, 2M)"},
    {.id = OPTION_TOP, .name = "top", .arg = "N", .help = "at most so many origins"},
    {.id = OPTION_SUPPRESSIONS,
     .name = "suppressions",
     .arg = "FILE",
     .help = "suspects that are known, as lines 'leak:PATTERN'"},
    TTM_OPTIONS_LEAK_START,
    {.id = OPTION_FULL_PATHS, .name = "full-paths", .help = "files with their folders"},
    {.id = OPTION_SOURCE,
     .name = "source",
     .help = "show source lines of files that are not yours, too"},
    TTM_OPTION_JSON,
    TTM_OPTION_HELP_ROW,
    {0},
};

static int parse_region(const struct ttm_options *parsed, struct ttm_report_choice *choice)
{
    choice->region = ttm_region_parse(parsed->value);
    return choice->region < 0
               ? ttm_options_complain(parsed,
                                      "'%s' is no region; there are DRAM, L1, "
                                      "SYSTEM_MEMORY, L1_SMALL, TRACE, CB and KERNEL",
                                      parsed->value)
               : 0;
}

static void parse_moment(const char *word, struct ttm_report_choice *choice)
{
    choice->at = strcmp(word, "remaining") == 0 ? TTM_AT_REMAINING
                 : strcmp(word, "peak") == 0    ? TTM_AT_PEAK
                                                : TTM_AT_MARK;
    choice->mark = choice->at == TTM_AT_MARK ? word : NULL;
}

static int parse_by(const struct ttm_options *parsed, struct ttm_report_choice *choice)
{
    static const char *const words[] = {
        [TTM_BY_ORIGIN] = "origin", [TTM_BY_STACK] = "stack", [TTM_BY_FREES] = "frees"};

    for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++) {
        if (strcmp(parsed->value, words[i]) == 0) {
            choice->by = (enum ttm_report_by)i;
            return 0;
        }
    }
    return ttm_options_complain(parsed, "'%s' is none of origin, stack and frees", parsed->value);
}

/* Returns 0, or what the option's reader said. */
static int take_option(const struct ttm_options *parsed, int id, struct ttm_report_choice *choice)
{
    uint64_t number = 0;
    int r = 0;

    if (id == OPTION_ALL)
        choice->is_unfolded = true;
    else if (id == OPTION_FULL_PATHS)
        choice->has_full_paths = true;
    else if (id == OPTION_SOURCE)
        choice->reads_any_source = true;
    else if (id == OPTION_AT)
        parse_moment(parsed->value, choice);
    else if (id == OPTION_BY)
        r = parse_by(parsed, choice);
    else if (id == OPTION_SUPPRESSIONS)
        choice->suppressions = parsed->value;
    else if (id == TTM_OPTION_AFTER_MARK || id == TTM_OPTION_WARMUP)
        r = ttm_options_leak_start(parsed, id, &choice->judged);
    else if (id == 'd')
        r = ttm_options_devices(parsed, &choice->devices);
    else if (id == OPTION_REGION)
        r = parse_region(parsed, choice);
    else if (id == OPTION_PID)
        r = ttm_options_number(parsed, "a process id", 1, INT32_MAX, &number);
    else if (id == OPTION_MIN_BYTES)
        r = ttm_options_bytes(parsed, &choice->min_bytes);
    else if (id == OPTION_TOP)
        r = ttm_options_number(parsed, "a number", 1, UINT32_MAX, &choice->top);
    else if (id == 'j')
        choice->is_json = true;
    if (id == OPTION_PID && r == 0)
        choice->pid = (int32_t)number;
    return r;
}

static bool has_device(const struct ttm_report *report, const struct ttm_report_choice *choice,
                       unsigned id)
{
    for (uint32_t i = 0; i < report->process_count; i++) {
        const struct ttm_report_process *process = &report->processes[i];
        for (uint32_t d = 0; ttm_report_has_process(choice, process) && d < process->device_count;
             d++) {
            if (process->devices[d].id == id)
                return true;
        }
    }
    return false;
}

/* Whether each device that was asked for is there; says so when one is not. */
static bool are_devices_there(const struct ttm_report *report,
                              const struct ttm_report_choice *choice, const char *path)
{
    for (unsigned id = 0; !choice->devices.is_all && id < TTM_DEVICE_COUNT; id++) {
        if (!ttm_device_filter_has(&choice->devices, id) || has_device(report, choice, id))
            continue;
        if (choice->pid != 0)
            ttm_log("there is no device %u of process %d in '%s'", id, choice->pid, path);
        else
            ttm_log("there is no device %u in '%s'", id, path);
        return false;
    }
    return true;
}

/* Whether the leak check begins in any process; says so when it does not. */
static bool is_judged(const struct ttm_report *report, const struct ttm_report_choice *choice,
                      const char *path)
{
    char duration[TTM_NUMBER_SIZE];

    for (uint32_t i = 0; i < report->process_count; i++) {
        const struct ttm_report_process *process = &report->processes[i];
        if (ttm_report_has_process(choice, process) && !process->is_unjudged)
            return true;
    }
    if (choice->judged.after_mark)
        ttm_log("there is no mark '%s' in '%s'", choice->judged.after_mark, path);
    else if (choice->judged.has_warmup)
        ttm_log("no process in '%s' ran for more than %s", path,
                ttm_format_duration(choice->judged.warmup_ns, duration));
    return !choice->judged.after_mark && !choice->judged.has_warmup;
}

/* Whether what was asked for is in the recording; says so when it is not. */
static bool is_there(const struct ttm_report *report, const struct ttm_report_choice *choice,
                     const char *path)
{
    bool has_process = false, has_mark = false;

    for (uint32_t i = 0; i < report->process_count; i++) {
        if (!ttm_report_has_process(choice, &report->processes[i]))
            continue;
        has_process = true;
        has_mark |= report->processes[i].has_moment[0];
    }
    if (choice->pid != 0 && !has_process) {
        ttm_log("there is no process %d in '%s'", choice->pid, path);
        return false;
    }
    if (choice->at == TTM_AT_MARK && !has_mark) {
        ttm_log("there is no mark '%s' in '%s'", choice->mark, path);
        return false;
    }
    return is_judged(report, choice, path) && are_devices_there(report, choice, path);
}

static int print(const struct ttm_report *report, const struct ttm_report_choice *choice,
                 const char *path)
{
    const struct ttm_terminal terminal = ttm_terminal_of(STDOUT_FILENO);
    struct ttm_text whole, out;

    ttm_text_init(&whole);
    ttm_text_init(&out);
    int r = choice->is_json ? ttm_report_json(report, choice, &out)
                            : ttm_report_text(report, choice, path, &terminal, &whole);
    if (r == 0 && !choice->is_json)
        ttm_terminal_fit(&terminal, &whole, &out);
    if (r == 0)
        r = ttm_terminal_print(&out);
    ttm_text_done(&whole);
    ttm_text_done(&out);
    return r < 0 ? ttm_ask_unwritten(r) : TTM_EXIT_OK;
}

static int show(const char *path, const struct ttm_report_choice *choice)
{
    struct ttm_report_options wanted = choice->judged;
    struct ttm_report report = {0};

    wanted.moments[0] = choice->mark;
    int status = ttm_recording_report(path, &wanted, &report);
    if (status == TTM_EXIT_OK && choice->suppressions)
        status = ttm_suppress_suspects(choice->suppressions, &report);
    if (status == TTM_EXIT_OK)
        status = is_there(&report, choice, path) ? print(&report, choice, path) : TTM_EXIT_FAILED;
    ttm_report_done(&report);
    return status;
}

static int run(int argc, char **argv)
{
    struct ttm_report_choice choice = {.devices.is_all = true, .region = -1};
    struct ttm_options parsed;
    int id, r = 0;

    ttm_options_init(&parsed, &ttm_command_report, argc, argv);
    while (r == 0 && (id = ttm_options_next(&parsed)) > 0)
        r = take_option(&parsed, id, &choice);
    if (r < 0 || id != TTM_OPTION_END)
        return r == 0 && id == TTM_OPTION_HELP ? TTM_EXIT_OK : TTM_EXIT_USAGE;
    char **rest = ttm_options_rest(&parsed);
    if (rest[0] && rest[1]) {
        (void)ttm_options_complain(&parsed, "'%s' is one file too many", rest[1]);
        return TTM_EXIT_USAGE;
    }
    char *newest = rest[0] ? NULL : ttm_recording_newest();
    if (!rest[0] && !newest) {
        ttm_log("there is no recording (*.ttmem) in this folder; 'tt-mem run COMMAND' makes one");
        return TTM_EXIT_FAILED;
    }
    const int status = show(rest[0] ? rest[0] : newest, &choice);
    free(newest);
    return status;
}

const struct ttm_command ttm_command_report = {
    .name = "report",
    .synopsis = "[FILE] [--at MOMENT] [--by WHAT] [--all] [-d LIST]\n"
                "                     [--region REGION] [--after-mark NAME | --warmup SECONDS]\n"
                "                     [--source] [--json]",
    .summary = "What a recording shows: peaks, what remains and where it comes from.",
    .details = "FILE is what 'tt-mem run' wrote; without it, the newest *.ttmem of this folder.\n"
               "Suspects come first: what keeps growing and is not given back.",
    .options = options,
    .run = run,
    .takes_operands = true,
};
