/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs a program with tracking. The program comes first: whatever goes wrong with
 * the tracking is said in one line, and the program runs without it. Only a wrong
 * command line, and a server that was asked for and is not there, keep it from
 * starting.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/log.h"
#include "cli/ask.h"
#include "cli/child.h"
#include "cli/command.h"
#include "cli/debug_log_file.h"
#include "cli/embedded.h"
#include "cli/options.h"
#include "cli/overwrite.h"
#include "cli/program.h"
#include "cli/record_file.h"
#include "cli/recording_file.h"
#include "cli/run_summary.h"
#include "cli/suppress.h"
#include "cli/terminal.h"
#include "cli/tracked_env.h"
#include "cli/watched.h"
#include "recording/recorder.h"
#include "server/server.h"
#include "wire/attach.h"

#define FRAMES_MAX 128
#define LOG_STOP_MS 1000
#define VERDICT_SIZE 192

enum {
    OPTION_NO_RECORD = 256,
    OPTION_PYTHON_FRAMES,
    OPTION_NATIVE_FRAMES,
    OPTION_NO_STACKS,
    OPTION_CONNECT,
    OPTION_FAIL_ON_LEAK,
    OPTION_COUNT_PROGRAM_CACHE,
    OPTION_SUPPRESSIONS,
    OPTION_DEBUG_LOG,
    OPTION_HOLDERS,
};

static const struct ttm_option options[] = {
    {.id = 'o',
     .name = "output",
     .arg = "FILE",
     .help = "record to FILE instead of tt-mem.<pid>.ttmem"},
    {.id = OPTION_NO_RECORD, .name = "no-record", .help = "keep no recording"},
    {.id = OPTION_PYTHON_FRAMES,
     .name = "python-frames",
     .arg = "N",
     .help = "how much of a Python call stack is kept"},
    {.id = OPTION_NATIVE_FRAMES,
     .name = "native-frames",
     .arg = "N",
     .help = "how much of a native call stack is kept"},
    {.id = OPTION_NO_STACKS, .name = "no-stacks", .help = "keep no call stacks"},
    {.id = OPTION_CONNECT,
     .name = "connect",
     .arg = "SOCKET",
     .help = "report to the server that listens there"},
    {.id = OPTION_FAIL_ON_LEAK,
     .name = "fail-on-leak",
     .arg = "[=BYTES]",
     .help = "exit with 3 when suspects take more (64K, 2M)"},
    {.id = OPTION_COUNT_PROGRAM_CACHE,
     .name = "count-program-cache",
     .help = "count a growing program cache as a leak too"},
    {.id = OPTION_SUPPRESSIONS,
     .name = "suppressions",
     .arg = "FILE",
     .help = "suspects that are known: lines 'leak:PATTERN'"},
    TTM_OPTIONS_LEAK_START,
    {.id = OPTION_HOLDERS, .name = "holders", .help = "say which Python objects keep what remains"},
    {.id = OPTION_DEBUG_LOG,
     .name = "debug-log",
     .arg = "FILE",
     .help = "append each buffer's birth and end to FILE, as text"},
    TTM_OPTION_HELP_ROW,
    {0},
};

struct run {
    char **argv;            /* of the program */
    const char *connect;    /* NULL: a server of our own */
    uint64_t python_frames; /* UINT64_MAX: as the library likes */
    uint64_t native_frames; /* likewise */
    bool has_holders;       /* they are looked for */
    bool is_untracked;      /* there is no server, which was said */
    const char *output;     /* NULL: named after the program's process */
    bool is_unrecorded;
    bool has_leak_limit;
    bool counts_program_cache; /* towards that limit */
    uint64_t leak_limit_bytes;
    struct ttm_report_options judged; /* what counts as a leak */
    const char *suppressions_path;
    struct ttm_suppressions suppressions;
    const char *debug_log_path; /* NULL: none is wanted */
    struct ttm_debug_log_file *debug_log;
    char folder[64]; /* of a recording that nobody wants to keep, "" for none */
    struct ttm_recorder *recorder;
    enum ttm_program program;
    struct ttm_env env;
    struct ttm_embedded embedded; /* this one, */
    struct ttm_watched watched;   /* or with 'connect' this */
    struct ttm_child child;
};

/* ---- the command line ---- */

static int take_option(struct run *run, const struct ttm_options *parsed, int id)
{
    switch (id) {
    case 'o':
        run->output = parsed->value;
        return 0;
    case OPTION_NO_RECORD:
        run->is_unrecorded = true;
        return 0;
    case OPTION_FAIL_ON_LEAK:
        run->has_leak_limit = true;
        return parsed->value ? ttm_options_bytes(parsed, &run->leak_limit_bytes) : 0;
    case OPTION_COUNT_PROGRAM_CACHE:
        run->counts_program_cache = true;
        return 0;
    case OPTION_SUPPRESSIONS:
        run->suppressions_path = parsed->value;
        return 0;
    case TTM_OPTION_AFTER_MARK:
    case TTM_OPTION_WARMUP:
        return ttm_options_leak_start(parsed, id, &run->judged);
    case OPTION_HOLDERS:
        run->has_holders = true;
        return 0;
    case OPTION_PYTHON_FRAMES:
        return ttm_options_number(parsed, "a number of frames", 0, FRAMES_MAX, &run->python_frames);
    case OPTION_NATIVE_FRAMES:
        return ttm_options_number(parsed, "a number of frames", 0, FRAMES_MAX, &run->native_frames);
    case OPTION_NO_STACKS:
        run->python_frames = run->native_frames = 0;
        return 0;
    case OPTION_CONNECT:
        run->connect = parsed->value;
        return 0;
    case OPTION_DEBUG_LOG:
        run->debug_log_path = parsed->value;
        return 0;
    default:
        return 0;
    }
}

/* What needs a recording, which a server elsewhere does not give. */
static int refuse_for_server(const struct run *run, const struct ttm_options *parsed)
{
    const char *option = NULL;

    if (run->has_leak_limit)
        option = "--fail-on-leak";
    else if (run->judged.after_mark)
        option = "--after-mark";
    else if (run->judged.has_warmup)
        option = "--warmup";
    if (!run->connect || !option)
        return TTM_OPTION_END;
    return ttm_options_complain(parsed, "%s does not go with --connect, which records nothing here",
                                option);
}

static int parse(struct run *run, int argc, char **argv)
{
    struct ttm_options parsed;
    int id, r = 0;

    ttm_options_init(&parsed, &ttm_command_run, argc, argv);
    while (r == 0 && (id = ttm_options_next(&parsed)) > 0)
        r = take_option(run, &parsed, id);
    if (r < 0 || id != TTM_OPTION_END)
        return r < 0 ? r : id;
    run->argv = ttm_options_rest(&parsed);
    if (!run->argv[0])
        return ttm_options_complain(&parsed, "the program to run is missing");
    if (run->output && strcmp(run->output, "-") == 0)
        return ttm_options_complain(&parsed, "a recording cannot be written to standard output");
    if (run->output && run->is_unrecorded)
        return ttm_options_complain(&parsed, "--output and --no-record exclude each other");
    if (run->connect && run->debug_log_path)
        return ttm_options_complain(&parsed, "--debug-log and --connect exclude each other");
    if (run->counts_program_cache && !run->has_leak_limit)
        return ttm_options_complain(&parsed, "--count-program-cache needs --fail-on-leak");
    if (run->has_holders && run->python_frames == 0)
        return ttm_options_complain(&parsed, "--holders needs Python frames");
    return refuse_for_server(run, &parsed);
}

/* ---- what the program gets ---- */

static void set_frames(struct ttm_env *env, const char *name, uint64_t frames)
{
    char number[TTM_NUMBER_SIZE];

    if (frames == UINT64_MAX)
        return;
    (void)snprintf(number, sizeof(number), "%u", (unsigned)frames);
    ttm_env_set(env, name, number);
}

/* By which we know our processes among all that the server tells of. */
static void set_run(struct run *run)
{
    char number[TTM_NUMBER_SIZE];

    (void)snprintf(number, sizeof(number), "%016" PRIx64, run->watched.run);
    ttm_env_set(&run->env, TTM_RUN_VARIABLE, number);
}

static void set_preload(struct run *run)
{
    char hook[PATH_MAX];
    struct ttm_text preload;

    if (run->program == TTM_PROGRAM_FOREIGN) /* its loader would complain, or give up */
        return;
    if (ttm_hook_say_missing(ttm_hook_find(hook), hook) < 0)
        return; /* programs on libttmem are tracked all the same */
    ttm_text_init(&preload);
    ttm_preload_append(&preload, hook, ttm_env_get(&run->env, "LD_PRELOAD"));
    if (!ttm_text_failed(&preload))
        ttm_env_set(&run->env, "LD_PRELOAD", ttm_text_string(&preload));
    ttm_text_done(&preload);
    ttm_text_init(&preload);
    ttm_asan_options_append(&preload, ttm_env_get(&run->env, "ASAN_OPTIONS"));
    if (!ttm_text_failed(&preload))
        ttm_env_set(&run->env, "ASAN_OPTIONS", ttm_text_string(&preload));
    ttm_text_done(&preload);
}

static void set_environment(struct run *run, const char *socket_path)
{
    ttm_env_set(&run->env, "TT_ALLOC_TRACKING_ENABLED", "1");
    ttm_env_set(&run->env, "TTMEM_SOCKET", socket_path);
    set_frames(&run->env, "TTMEM_PYTHON_FRAMES", run->python_frames);
    set_frames(&run->env, "TTMEM_NATIVE_FRAMES", run->native_frames);
    if (run->has_holders)
        ttm_env_set(&run->env, "TTMEM_HOLDERS", "1");
    set_preload(run);
}

/* ---- its server ---- */

/* Returns TTM_EXIT_OK, or what to exit with. */
static int open_server(struct run *run)
{
    char why[TTM_LISTENER_WHY_SIZE];

    if (run->connect) {
        if (run->output)
            ttm_log(
                "'%s' is not written: with --connect the server records (tt-mem serve --record)",
                run->output);
        const int status = ttm_watched_open(&run->watched, run->connect);
        if (status == TTM_EXIT_OK) {
            set_environment(run, run->connect);
            set_run(run);
        }
        return status;
    }
    if (ttm_embedded_open(&run->embedded, why) == 0) {
        set_environment(run, run->embedded.socket_path);
        return TTM_EXIT_OK;
    }
    ttm_log("%s; running without tracking", why);
    run->is_untracked = true;
    return TTM_EXIT_OK;
}

/* A recording that is not kept: the analysis needs one all the same. */
static struct ttm_recorder *record_aside(struct run *run)
{
    char path[128];

    run->is_unrecorded = true;
    (void)snprintf(run->folder, sizeof(run->folder), "/tmp/tt-mem-run-XXXXXX");
    if (!mkdtemp(run->folder)) {
        run->folder[0] = '\0';
        return NULL;
    }
    (void)snprintf(path, sizeof(path), "%s/run.ttmem", run->folder);
    return ttm_record_file_open(path);
}

/* Named after the program's process, which is what people see in other tools. */
static void start_recording(struct run *run)
{
    char path[128];

    if (run->connect || !run->embedded.server)
        return;
    (void)snprintf(path, sizeof(path), "tt-mem.%d.ttmem", (int)run->child.pid);
    if (!run->is_unrecorded)
        run->recorder = ttm_record_file_open(run->output ? run->output : path);
    if (!run->recorder)
        run->recorder = record_aside(run);
    ttm_server_set_recorder(run->embedded.server, run->recorder);
}

/* Before the program starts, so that what is wrong with it is the first thing said. */
static void open_debug_log(struct run *run)
{
    if (!run->debug_log_path)
        run->debug_log_path = ttm_debug_log_wish();
    if (!run->debug_log_path)
        return;
    if (run->connect)
        ttm_log("no debug log: that is for the server at '%s' to write", run->connect);
    else if (run->embedded.server)
        run->debug_log = ttm_debug_log_file_open(run->debug_log_path);
}

/* It is made from the recording. */
static void start_debug_log(struct run *run)
{
    if (!run->debug_log)
        return;
    if (run->recorder)
        (void)ttm_debug_log_file_follow(run->debug_log, ttm_recorder_path(run->recorder));
    else
        ttm_log("cannot write the debug log '%s': nothing is recorded", run->debug_log_path);
}

static void start_server(struct run *run)
{
    int r = 0;

    start_recording(run);
    start_debug_log(run);
    (void)ttm_log_start(STDERR_FILENO);
    if (run->connect)
        r = ttm_watched_start(&run->watched, run->child.pid);
    else if (run->embedded.server)
        r = ttm_embedded_start(&run->embedded);
    if (r == 0)
        return;
    /* What the program says waits in its connection and its rings, and is read at the end. */
    ttm_log("cannot start a thread: %s, %s", strerror(-r),
            run->connect ? "there will be no summary" : "live commands get no answer");
}

/* What became of the program's processes, once it has ended. */
static const struct ttm_departed *finish_server(struct run *run)
{
    if (run->connect) {
        ttm_watched_finish(&run->watched);
        return &run->watched.departed;
    }
    ttm_embedded_finish(&run->embedded);
    return &run->embedded.departed;
}

/* ---- the program ---- */

/* Returns 0, or what to exit with. */
static int start_program(struct run *run)
{
    const int r = ttm_child_start(&run->child, run->argv, run->env.list);

    if (r == 0)
        return 0;
    ttm_log("cannot run '%s': %s", run->argv[0], strerror(-r));
    return ttm_child_cannot_run_status(-r);
}

/* On one line: a script behind -c may have many. */
static void join_words(struct ttm_text *out, char *const *words)
{
    for (size_t i = 0; words[i]; i++) {
        const char *separator = i > 0 ? " " : "";
        for (const char *word = words[i]; *word || *separator;) {
            ttm_text_append(out, separator);
            const size_t n = strcspn(word, " \t\r\n");
            ttm_text_append_bytes(out, word, n);
            word += n;
            separator = *word ? " " : "";
            word += strspn(word, " \t\r\n");
        }
    }
}

static void print_summary(const struct run *run, const struct ttm_child_end *end,
                          const struct ttm_departed *departed, const struct ttm_run_summary *found)
{
    const struct ttm_terminal terminal = ttm_terminal_of(STDERR_FILENO);
    struct ttm_text command, whole, out;

    ttm_text_init(&command);
    ttm_text_init(&whole);
    ttm_text_init(&out);
    join_words(&command, run->argv);
    const struct ttm_run_summary summary = {
        .command = ttm_text_string(&command),
        .end = *end,
        .program = run->program,
        .fd_limit = run->child.fds.rlim_cur,
        .is_untracked = run->is_untracked,
        .departed = departed,
        .server = run->connect,
        .is_server_gone = run->watched.is_server_gone,
        .report = found->report,
        .leak_verdict = found->leak_verdict,
        .recording = found->recording,
        .recording_bytes = found->recording_bytes,
        .recording_stopped = found->recording_stopped,
    };
    ttm_run_summary_text(&summary, &terminal, &whole);
    ttm_terminal_fit(&terminal, &whole, &out);
    if (ttm_text_failed(&whole))
        ttm_log("cannot sum up: memory is short");
    else
        (void)ttm_terminal_write(STDERR_FILENO, &out); /* who closed it does not want to know */
    ttm_text_done(&command);
    ttm_text_done(&whole);
    ttm_text_done(&out);
}

/* A file that has nothing in it is in nobody's interest, unless it was asked for by name. */
static char *finish_recording(struct run *run, const struct ttm_departed *departed,
                              uint64_t *ret_bytes, int *ret_error)
{
    char *path;

    if (run->embedded.server)
        ttm_server_set_recorder(run->embedded.server, NULL);
    *ret_error = ttm_record_file_close(run->recorder, &path, ret_bytes);
    run->recorder = NULL;
    if (path && (!run->output || run->is_unrecorded) && !ttm_departed_has_news(departed)) {
        (void)unlink(path);
        free(path);
        return NULL;
    }
    struct stat wanted, made; /* as it was typed, where that is where it is */
    if (path && run->output && stat(run->output, &wanted) == 0 && stat(path, &made) == 0 &&
        wanted.st_dev == made.st_dev && wanted.st_ino == made.st_ino) {
        free(path);
        path = strdup(run->output);
    }
    return path;
}

/* ---- what the recording shows ---- */

/* Reads the recording, if there is one. Returns whether there is a report. */
static bool analyse(struct run *run, const char *path, struct ttm_report *ret)
{
    if (!path || ttm_recording_report(path, &run->judged, ret) != TTM_EXIT_OK)
        return false;
    (void)ttm_suppressions_apply(&run->suppressions, ret);
    return true;
}

/* What counts as leaked. In a recording that was cut, what was freed later is among it. */
static uint64_t leaked_bytes(const struct run *run, const struct ttm_report *report,
                             const struct ttm_departed *departed, bool is_cut)
{
    uint64_t bytes = 0;

    if (report && run->counts_program_cache)
        bytes = ttm_report_leaked_or_cached_bytes(report);
    else if (report)
        bytes = ttm_report_leaked_bytes(report);
    const uint64_t remaining = departed->sums.remaining_footprint_bytes;

    return is_cut && bytes > remaining ? remaining : bytes;
}

static bool is_judged(const struct ttm_report *report)
{
    for (uint32_t i = 0; report && i < report->process_count; i++) {
        if (!report->processes[i].is_unjudged)
            return true;
    }
    return false;
}

/* "the mark 'warm' was never set": why nothing was judged. */
static void tell_unjudged(const struct run *run, const struct ttm_report *report,
                          char text[VERDICT_SIZE])
{
    char duration[TTM_NUMBER_SIZE], mark[65] = "";

    if (run->judged.after_mark)
        (void)ttm_text_copy_safe(mark, sizeof(mark), run->judged.after_mark);
    if (!report)
        (void)snprintf(text, VERDICT_SIZE, "leaks were not looked for: nothing was recorded");
    else if (run->judged.after_mark)
        (void)snprintf(text, VERDICT_SIZE, "leaks were not looked for: the mark '%s' was never set",
                       mark);
    else
        (void)snprintf(text, VERDICT_SIZE,
                       "leaks were not looked for: the program ended in its warm-up of %s",
                       ttm_format_duration(run->judged.warmup_ns, duration));
}

/* Whether the limit on leaks is passed; in words in 'text'. */
static bool has_leaked(const struct run *run, const struct ttm_report *report,
                       const struct ttm_departed *departed, bool is_cut, char text[VERDICT_SIZE])
{
    char leaked[TTM_NUMBER_SIZE], limit[TTM_NUMBER_SIZE], number[TTM_NUMBER_SIZE];
    char known[48] = "", doubt[TTM_NUMBER_SIZE + 16] = "";
    const uint64_t bytes = leaked_bytes(run, report, departed, is_cut);
    const uint64_t unsure = report ? ttm_report_unsure_bytes(report) : 0;
    const bool is_over = bytes > run->leak_limit_bytes;

    if (report && report->suppressed > 0)
        (void)snprintf(known, sizeof(known), ", %u suppressed", report->suppressed);
    if (unsure > 0)
        (void)snprintf(doubt, sizeof(doubt), ", %s unsure", ttm_format_bytes(unsure, number));
    (void)snprintf(text, VERDICT_SIZE, "%s: suspects%s take %s of a device, the limit is %s%s%s",
                   is_over ? "leaks found" : "no leaks over the limit",
                   run->counts_program_cache ? " and the growing program cache" : "",
                   ttm_format_bytes(bytes, leaked), ttm_format_bytes(run->leak_limit_bytes, limit),
                   known, doubt);
    if (!report)
        (void)snprintf(text, VERDICT_SIZE, "leaks were not looked for: nothing was recorded");
    else if (is_cut && !is_over)
        (void)snprintf(text, VERDICT_SIZE,
                       "leaks were looked for in a part alone: the recording stopped");
    return is_over;
}

/*
 * Says in 'text' what is to be said of leaks, and returns what to exit with for it, or TTM_EXIT_OK.
 * A check that was asked for and had nothing to judge has failed: nobody would notice otherwise that a
 * mark was renamed.
 */
static int check_leaks(const struct run *run, const struct ttm_report *report,
                       const struct ttm_departed *departed, bool is_cut, char text[VERDICT_SIZE])
{
    const bool is_narrowed = run->judged.after_mark || run->judged.has_warmup;

    if (is_narrowed && !is_judged(report)) {
        tell_unjudged(run, report, text);
        return run->has_leak_limit ? TTM_EXIT_FAILED : TTM_EXIT_OK;
    }
    if (!run->has_leak_limit)
        return TTM_EXIT_OK;
    return has_leaked(run, report, departed, is_cut, text) ? TTM_EXIT_FOUND : TTM_EXIT_OK;
}

static void drop_folder(const struct run *run, const char *path)
{
    if (run->folder[0] == '\0')
        return;
    if (path)
        (void)unlink(path);
    (void)rmdir(run->folder);
}

static int run_program(struct run *run)
{
    struct ttm_child_end end;
    struct ttm_report report = {0};
    char verdict[VERDICT_SIZE] = "";
    uint64_t bytes;
    int error, status = start_program(run);

    if (status != 0)
        return status;
    start_server(run);
    ttm_child_wait(&run->child, &end);
    const struct ttm_departed *departed = finish_server(run);
    ttm_child_reap(&run->child);
    char *path = finish_recording(run, departed, &bytes, &error);
    ttm_debug_log_file_close(run->debug_log);
    ttm_log_stop(LOG_STOP_MS); /* what was said in between comes before the summary */
    const bool has_report = analyse(run, path, &report);
    /* One that is finished has all of it, whatever went wrong then. */
    const bool is_cut = error < 0 && !(has_report && report.info.is_finished);
    const int leaks = check_leaks(run, has_report ? &report : NULL, departed, is_cut, verdict);
    const struct ttm_run_summary summary = {
        .report = has_report ? &report : NULL,
        .leak_verdict = verdict[0] ? verdict : NULL,
        .recording = run->is_unrecorded ? NULL : path,
        .recording_bytes = bytes,
        .recording_stopped = is_cut ? strerror(-error) : NULL,
    };
    if (!run->is_untracked || verdict[0]) /* else all there is to say was said at the start */
        print_summary(run, &end, departed, &summary);
    ttm_report_done(&report);
    drop_folder(run, path);
    free(path);
    if (leaks == TTM_EXIT_FOUND)
        return leaks;
    return ttm_child_status(&end) != 0 ? ttm_child_status(&end) : leaks;
}

static void look_at_program(struct run *run)
{
    char file[PATH_MAX];

    if (ttm_program_find(run->argv[0], getenv("PATH"), file) == 0)
        run->program = ttm_program_look(file);
}

static int run_command(int argc, char **argv)
{
    extern char **environ;
    static struct run run = {.python_frames = UINT64_MAX, .native_frames = UINT64_MAX};

    const int id = parse(&run, argc, argv);
    if (id != TTM_OPTION_END)
        return id == TTM_OPTION_HELP ? TTM_EXIT_OK : TTM_EXIT_USAGE;
    if (run.output && !run.is_unrecorded && !run.connect) {
        const int other = ttm_overwrite_other(run.output);
        if (other != TTM_EXIT_OK)
            return other;
    }
    /* A file that cannot be read is told before the program starts, which may take hours. */
    const int suppressed = ttm_suppress_read(run.suppressions_path, &run.suppressions);
    if (suppressed != TTM_EXIT_OK)
        return suppressed;
    ttm_child_init(&run.child);
    ttm_watched_init(&run.watched);
    ttm_env_init(&run.env, environ);
    look_at_program(&run);
    int status = open_server(&run);
    open_debug_log(&run);
    if (status == TTM_EXIT_OK && run.env.list) {
        status = run_program(&run);
    } else if (status == TTM_EXIT_OK) {
        ttm_log("cannot run '%s': memory is short", run.argv[0]);
        status = TTM_EXIT_FAILED;
    }
    ttm_embedded_done(&run.embedded);
    ttm_watched_done(&run.watched);
    ttm_env_done(&run.env);
    ttm_suppressions_done(&run.suppressions);
    return status;
}

const struct ttm_command ttm_command_run = {
    .name = "run",
    .synopsis = "[-o FILE | --no-record] [--python-frames N]\n"
                "                  [--native-frames N] [--no-stacks]\n"
                "                  [--fail-on-leak[=BYTES] [--count-program-cache]]\n"
                "                  [--after-mark NAME | --warmup SECONDS] [--suppressions FILE]\n"
                "                  [--holders] [--debug-log FILE] [--connect SOCKET]\n"
                "                  [--] CMD [ARG…]",
    .summary = "Runs a program, tracks it and sums up what it left in device memory.",
    .details = "No server is needed: the command brings one, which the other commands find while\n"
               "the program runs. The program's input, output, signals and exit status are its\n"
               "own; the summary goes to standard error when it ends.",
    .options = options,
    .run = run_command,
    .takes_command = true,
};
