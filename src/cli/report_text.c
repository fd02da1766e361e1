/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The head says what ran and how far the numbers can be trusted; then come devices,
 * failures, suspects with their source lines, the rest by origin, and what to type
 * next. Lists share the rows of the terminal, and what does not fit is counted.
 */
#include "cli/report_text.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "analysis/root_cause.h"
#include "base/clock.h"
#include "base/seed.h"
#include "cli/failure_text.h"
#include "cli/histogram.h"
#include "cli/recording_file.h"
#include "cli/report_rows.h"
#include "cli/report_sheet.h"
#include "cli/report_words.h"
#include "wire/origin_row.h"
#include "wire/region.h"

#define ROWS_ELSEWHERE 40
#define ROWS_NARROW 14 /* for the table and all below it */
#define FAILURE_KINDS_SHOWN 4
#define ROWS_BRIEF 20
#define ARTEFACT_ROWS 3 /* that an explanation takes on 80 columns */

/* ---- the head ---- */

static void put_end(const struct sheet *sheet)
{
    const struct ttm_report_process *process = sheet->process;
    char span[TTM_NUMBER_SIZE], how[TTM_END_WORDS_SIZE];

    (void)ttm_format_duration(ttm_report_span_ns(sheet->report, process), span);
    (void)ttm_report_end_words(sheet->report, process, how);
    if (!process->has_ended) {
        ttm_text_format(sheet->out, ", %s recorded, ", span);
        put_in(sheet, TTM_YELLOW, how);
        return;
    }
    if (process->is_logged) { /* a log tells neither its start nor how it ended */
        if (!process->is_untimed && process->last_ns - process->first_ns >= TTM_NS_PER_S)
            ttm_text_format(sheet->out, ", %s logged", span);
        return;
    }
    ttm_text_format(sheet->out, " ended after %s, ", span);
    put_in(sheet,
           process->end.how == TTM_PROCESS_EXITED && process->end.code == 0 ? TTM_PLAIN : TTM_RED,
           how);
}

static void put_command(const struct sheet *sheet)
{
    const size_t width = sheet->terminal->columns;
    const size_t room = width > 60 ? width - 46 : 14;
    struct ttm_text safe;

    ttm_text_init(&safe);
    ttm_terminal_command(&safe, sheet->process->command);
    const size_t length = ttm_terminal_width(ttm_text_string(&safe));
    ttm_terminal_colour(sheet->terminal, sheet->out, TTM_BOLD);
    put_columns(sheet, ttm_text_string(&safe), length < room ? length : room);
    ttm_terminal_colour(sheet->terminal, sheet->out, TTM_PLAIN);
    sheet->out->failed |= safe.failed;
    ttm_text_done(&safe);
}

static void put_head(struct sheet *sheet)
{
    const struct ttm_report_process *process = sheet->process;
    char allocs[TTM_NUMBER_SIZE], frees[TTM_NUMBER_SIZE], lost[TTM_NUMBER_SIZE];

    put_command(sheet);
    if (sheet->report->process_count > 1)
        ttm_text_format(sheet->out, " (pid %d)", process->pid);
    put_end(sheet);
    end_line(sheet);
    ttm_text_format(sheet->out, "  %u %s%s%s %s, %s %s, ", process->device_count,
                    plural(process->device_count, "device", "devices"), dot(sheet),
                    ttm_format_count(process->allocs, allocs),
                    plural(process->allocs, "allocation", "allocations"),
                    ttm_format_count(process->frees, frees),
                    plural(process->frees, "free", "frees"));
    if (process->counters.lost_events == 0) {
        put(sheet, process->has_missed ? "not all was heard"
                   : process->is_cut   ? "not all is recorded"
                                       : "nothing lost");
    } else {
        char text[64];
        (void)snprintf(text, sizeof(text), "%s lost",
                       ttm_format_count(process->counters.lost_events, lost));
        put_in(sheet, TTM_RED, text);
    }
    if (process->mark_count > 0)
        ttm_text_format(sheet->out, "%s%u %s", dot(sheet), process->mark_count,
                        plural(process->mark_count, "mark", "marks"));
    end_line(sheet);
}

static void put_flaws(struct sheet *sheet)
{
    struct ttm_text flaws;

    ttm_text_init(&flaws);
    ttm_recording_flaws(&sheet->report->info, &flaws);
    if (flaws.length > 0) {
        put(sheet, "  ");
        put_in(sheet, TTM_YELLOW, ttm_text_string(&flaws));
        end_line(sheet);
    }
    sheet->out->failed |= flaws.failed;
    ttm_text_done(&flaws);
}

/* How far to trust it, when that is not all the way. */
static void put_caution(struct sheet *sheet)
{
    if (sheet->process->why_incomplete[0] != '\0') {
        put(sheet, "  ");
        put_in(sheet, TTM_YELLOW,
               sheet->process->is_complete ? "what remains is exact, the history is not: "
                                           : "not exact: ");
        ttm_text_append_safe(sheet->out, sheet->process->why_incomplete);
        end_line(sheet);
    }
    put_flaws(sheet);
}

/* ---- failures, findings ---- */

/* "out of memory in L1 of device 0 after 60 ms at p.py:4 f"; of several ", 3 times from … to …,". */
static void put_what_failed(const struct sheet *sheet, const struct ttm_report_failure *failure)
{
    const uint64_t start_ns = sheet->process->first_ns;
    char count[TTM_NUMBER_SIZE], first[TTM_NUMBER_SIZE], last[TTM_NUMBER_SIZE];

    if (failure->failure.kind == TTM_FAILURE_CB_CLASH) {
        put_in(sheet, TTM_RED, "circular buffers clash with L1 buffers");
        ttm_text_format(sheet->out, " on device %u", failure->device_id);
    } else {
        put_in(sheet, TTM_RED, "out of memory");
        ttm_text_format(sheet->out, " in %s of device %u", ttm_region_name(failure->failure.region),
                        failure->device_id);
    }
    (void)ttm_format_duration(failure->time_ns - start_ns, last);
    if (failure->alike > 1)
        ttm_text_format(sheet->out, ", %s times from %s to %s, at ",
                        ttm_format_count(failure->alike, count),
                        ttm_format_duration(failure->first_ns - start_ns, first), last);
    else
        ttm_text_format(sheet->out, " after %s at ", last);
    ttm_report_place_and_caller(sheet, &failure->words, sheet->out);
}

/* ": fragmented"; nothing where nothing can be said. */
static void put_verdict(const struct sheet *sheet, const struct ttm_report_failure *failure)
{
    if (failure->shortage != TTM_SHORTAGE_NONE)
        ttm_text_format(sheet->out, ": %s", ttm_shortage_name(failure->shortage));
}

static void put_clash(struct sheet *sheet, const struct ttm_recorded_failure *f)
{
    char all[TTM_NUMBER_SIZE], largest[TTM_NUMBER_SIZE];

    if (f->bank_wanted_bytes == 0)
        return;
    put(sheet, "    ");
    ttm_failure_clash_text(sheet->out, f->bank_wanted_bytes, f->wanted_bytes);
    end_line(sheet);
    ttm_text_format(sheet->out, "    free %s a bank, largest block %s",
                    ttm_format_bytes(f->bank_free_bytes, all),
                    ttm_format_bytes(f->bank_largest_bytes, largest));
    end_line(sheet);
}

static void put_wanted(struct sheet *sheet, const struct ttm_report_failure *failure)
{
    const struct ttm_recorded_failure *f = &failure->failure;
    char all[TTM_NUMBER_SIZE], a[TTM_NUMBER_SIZE], b[TTM_NUMBER_SIZE], c[TTM_NUMBER_SIZE];

    ttm_text_format(sheet->out, "    wanted %s", ttm_format_bytes(f->wanted_bytes, all));
    if (f->bank_wanted_bytes > 0)
        ttm_text_format(sheet->out, " (%s a bank); free %s, largest %s",
                        ttm_format_bytes(f->bank_wanted_bytes, a),
                        ttm_format_bytes(f->bank_free_bytes, b),
                        ttm_format_bytes(f->bank_largest_bytes, c));
    put_verdict(sheet, failure);
    end_line(sheet);
}

static void put_failure(struct sheet *sheet, const struct ttm_report_failure *failure)
{
    char a[TTM_NUMBER_SIZE], b[TTM_NUMBER_SIZE];

    put(sheet, "  ");
    put_what_failed(sheet, failure);
    end_line(sheet);
    if (failure->failure.kind == TTM_FAILURE_CB_CLASH)
        put_clash(sheet, &failure->failure);
    else
        put_wanted(sheet, failure);
    for (uint32_t i = 0; i < failure->owner_count && (i < 3 || sheet->choice->is_unfolded); i++) {
        const struct ttm_report_share *owner = &failure->owners[i];
        const struct ttm_report_origin *origin = &sheet->process->origins[owner->origin];
        ttm_text_format(sheet->out, "    %s %10s  ", i == 0 ? "held by" : "       ",
                        ttm_format_bytes(owner->held.footprint_bytes, a));
        ttm_report_place_and_caller(sheet, &origin->words, sheet->out);
        ttm_text_format(sheet->out, "  %s %s%s", ttm_format_count(owner->held.count, b),
                        plural(owner->held.count, "buffer", "buffers"),
                        origin->verdict.is_suspect ? "  suspect" : "");
        end_line(sheet);
    }
}

/* One that came before, in a line. */
static void put_earlier(struct sheet *sheet, const struct ttm_report_failure *failure)
{
    put(sheet, "  ");
    put_what_failed(sheet, failure);
    put_verdict(sheet, failure);
    end_line(sheet);
}

/* One of each kind, the last first: that is the one that ended the program, if one did. */
static void put_failures(struct sheet *sheet)
{
    const struct ttm_report_process *process = sheet->process;
    uint64_t told = 0;
    uint32_t kinds = 0;

    if (process->failure_count == 0)
        return;
    end_line(sheet);
    for (uint32_t i = process->failure_count; i-- > 0;) {
        const struct ttm_report_failure *failure = &process->failures[i];
        if (!failure->is_last || (kinds >= FAILURE_KINDS_SHOWN && !sheet->choice->is_unfolded))
            continue;
        if (kinds == 0 || sheet->choice->is_unfolded)
            put_failure(sheet, failure);
        else
            put_earlier(sheet, failure);
        told += failure->alike;
        kinds++;
    }
    if (process->failures_ever > told) {
        char more[TTM_NUMBER_SIZE];
        ttm_text_format(sheet->out, "    %s %s more failed%s",
                        ttm_terminal_ellipsis(sheet->terminal),
                        ttm_format_count(process->failures_ever - told, more),
                        sheet->choice->is_unfolded ? "" : ": --all");
        end_line(sheet);
    }
}

static void put_finding(struct sheet *sheet, uint64_t count, const char *what)
{
    char number[TTM_NUMBER_SIZE];

    if (count == 0)
        return;
    put(sheet, "  ");
    put_in(sheet, TTM_YELLOW, ttm_format_count(count, number));
    ttm_text_format(sheet->out, " %s", what);
    end_line(sheet);
}

/* Of an origin that was mostly replaced, its sentence tells why that is no leak. */
static bool is_artefact(const struct ttm_report_origin *origin)
{
    return origin->verdict.class == TTM_CLASS_UNSURE && origin->replaced > 0 &&
           origin->replaced >= origin->allocs / 2;
}

static const struct ttm_report_origin *worst_artefact(const struct ttm_report_process *process)
{
    const struct ttm_report_origin *worst = NULL;

    for (uint32_t i = 0; i < process->origin_count; i++) {
        const struct ttm_report_origin *origin = &process->origins[i];
        if (is_artefact(origin) && (!worst || origin->replaced > worst->replaced))
            worst = origin;
    }
    return worst;
}

/* "address 0x18b20: 175 of 176 were allocated again ...: an accounting artefact of the log" */
static void put_artefact(struct sheet *sheet, const struct ttm_report_origin *origin)
{
    struct ttm_text text;

    ttm_text_init(&text);
    ttm_report_place(sheet, &origin->words, &text);
    ttm_text_format(&text, ": %s", origin->verdict.why);
    ttm_report_wrapped(sheet, ttm_text_string(&text), 5);
    sheet->out->failed |= text.failed;
    ttm_text_done(&text);
}

/* The worst, or all but those that the table explained. */
static void put_artefacts(struct sheet *sheet)
{
    const struct ttm_report_process *process = sheet->process;
    const struct ttm_report_origin *worst = worst_artefact(process);

    if (!sheet->choice->is_unfolded && worst)
        put_artefact(sheet, worst);
    for (uint32_t i = 0; i < process->origin_count && sheet->choice->is_unfolded; i++) {
        if (is_artefact(&process->origins[i]) && process->origins[i].remaining.count == 0)
            put_artefact(sheet, &process->origins[i]);
    }
}

static void put_findings(struct sheet *sheet)
{
    const struct ttm_report_process *process = sheet->process;
    const uint64_t unknown = process->counters.unknown_frees;
    const uint64_t ambiguous = process->counters.ambiguous_frees;
    uint64_t replaced = 0;

    for (uint32_t i = 0; i < process->origin_count; i++)
        replaced += process->origins[i].replaced;
    put_finding(sheet, replaced, "allocated again at the same address with no free between");
    put_artefacts(sheet);
    put_finding(sheet, process->overlaps, "put where something else was still allocated");
    put_finding(sheet, unknown,
                plural(unknown, "free of something unknown", "frees of something unknown"));
    put_finding(sheet, ambiguous,
                plural(ambiguous, "free that fitted several", "frees that fitted several"));
    put_finding(sheet, process->counters.notes_left_out,
                "without room: later names, contexts and stacks are missing");
}

/* ---- sizes, addresses ---- */

/* The sizes of what remains: the most common ones in a line, with --all a histogram. */
static void put_sizes(struct sheet *sheet)
{
    const struct ttm_report_process *process = sheet->process;
    struct ttm_histogram histogram;

    if (sheet->choice->at != TTM_AT_REMAINING || (!sheet->choice->is_unfolded && sheet->rows == 0))
        return;
    ttm_histogram_init(&histogram, ttm_seed_random());
    for (uint32_t i = 0; i < process->origin_count; i++) {
        const struct ttm_report_origin *origin = &process->origins[i];
        if (origin->region == TTM_REGION_KERNEL || !ttm_report_has_origin(sheet->choice, origin))
            continue;
        for (uint32_t k = 0; k < origin->size_count; k++)
            ttm_histogram_add_many(&histogram, origin->sizes[k].bytes, origin->sizes[k].count);
    }
    if (histogram.count > 0 && sheet->choice->is_unfolded) {
        end_line(sheet);
        ttm_histogram_text(&histogram, sheet->terminal, sheet->out);
    } else if (histogram.count > 0) {
        put(sheet, "  sizes: ");
        ttm_histogram_line(&histogram, sheet->terminal, sheet->terminal->columns - 10, sheet->out);
        end_line(sheet);
    }
    sheet->out->failed |= histogram.failed;
    ttm_histogram_done(&histogram);
}

/* The address that was used most often, in a line. */
static void put_address(struct sheet *sheet, const struct ttm_reused *most)
{
    char births[TTM_NUMBER_SIZE], frees[TTM_NUMBER_SIZE];

    if (sheet->rows == 0)
        return;
    ttm_text_format(sheet->out, "  address used most: 0x%llx in %s, %s allocations, %s %s",
                    (unsigned long long)most->address, ttm_region_name(most->region),
                    ttm_format_count(most->births, births), ttm_format_count(most->frees, frees),
                    plural(most->frees, "free", "frees"));
    end_line(sheet);
}

/* The addresses that were used most often. */
static void put_addresses(struct sheet *sheet)
{
    const struct ttm_reused *list[TTM_REPORT_ADDRESSES];
    const uint32_t count = ttm_report_addresses(sheet->choice, sheet->process, list);
    char births[TTM_NUMBER_SIZE], frees[TTM_NUMBER_SIZE];

    if (count == 0)
        return;
    if (!sheet->choice->is_unfolded) {
        put_address(sheet, list[0]);
        return;
    }
    end_line(sheet);
    put_in(sheet, TTM_DIM, "  addresses used most often       allocations      frees");
    end_line(sheet);
    for (uint32_t i = 0; i < count; i++) {
        const struct ttm_reused *reused = list[i];
        ttm_text_format(sheet->out, "    %-13s 0x%-12llx %14s %10s",
                        ttm_region_name(reused->region), (unsigned long long)reused->address,
                        ttm_format_count(reused->births, births),
                        ttm_format_count(reused->frees, frees));
        end_line(sheet);
    }
}

/* ---- all of it ---- */

static void put_left_out(struct sheet *sheet)
{
    if (sheet->sources->left_out > 0)
        put(sheet, "\n  " TTM_SOURCE_LEFT_OUT "; use --source\n");
}

/* What to type next, as far as it says something new. */
static void put_next(struct sheet *sheet)
{
    const struct ttm_report_choice *choice = sheet->choice;
    struct ttm_text file;

    ttm_text_init(&file);
    ttm_text_append_safe(&file, sheet->path);
    put(sheet, "\n");
    const size_t line = sheet->out->length;
    put(sheet, "  next: ");
    if (choice->at != TTM_AT_PEAK) {
        put(sheet, "tt-mem report ");
        put(sheet, ttm_text_string(&file));
        put(sheet, " ");
        put_in(sheet, TTM_BOLD, "--at peak");
    } else {
        put(sheet, "tt-mem report ");
        put(sheet, ttm_text_string(&file));
    }
    const size_t taken = ttm_terminal_width(ttm_text_string(sheet->out) + line);
    const bool has_room =
        !sheet->terminal->is_terminal ||
        taken + strlen(" - --all for stacks and sizes") <= sheet->terminal->columns;
    if (!choice->is_unfolded) {
        put(sheet, dot(sheet));
        put_in(sheet, TTM_BOLD, "--all");
        put(sheet, has_room ? " for stacks and sizes" : "");
    }
    put(sheet, "\n");
    sheet->out->failed |= file.failed;
    ttm_text_done(&file);
}

static int put_process(struct sheet *sheet)
{
    put_head(sheet);
    put_caution(sheet);
    ttm_report_devices(sheet);
    put_failures(sheet);
    sheet->below = sheet->rows > ROWS_NARROW ? 2 : 1;
    if (worst_artefact(sheet->process))
        sheet->below += ARTEFACT_ROWS;
    const int r =
        sheet->choice->by == TTM_BY_ORIGIN ? ttm_report_origins(sheet) : ttm_report_view(sheet);
    put_findings(sheet);
    put_sizes(sheet);
    put_addresses(sheet);
    return r;
}

static uint64_t suspect_bytes(const struct ttm_report_process *process,
                              const struct ttm_report_choice *choice)
{
    uint64_t sum = 0, cbs = 0;

    for (uint32_t i = 0; i < process->origin_count; i++) {
        const struct ttm_report_origin *origin = &process->origins[i];
        if (origin->verdict.is_suspect && ttm_report_has_origin(choice, origin))
            *(origin->region == TTM_REGION_CB ? &cbs : &sum) += origin->judged.footprint_bytes;
    }
    return sum + ttm_report_cb_taken(process, cbs);
}

static uint64_t allocs_of(const struct ttm_report_process *process,
                          const struct ttm_report_choice *choice)
{
    uint64_t sum = 0;

    for (uint32_t i = 0; i < process->origin_count; i++)
        sum += ttm_report_has_origin(choice, &process->origins[i]) ? process->origins[i].allocs : 0;
    return sum;
}

/* Of what was chosen, and with the mark if one was: the worst process elsewhere may have nothing to do with it. */
static bool is_worse(const struct ttm_report_process *a, const struct ttm_report_process *b,
                     const struct ttm_report_choice *choice)
{
    const uint64_t x = suspect_bytes(a, choice), y = suspect_bytes(b, choice);

    if (choice->at == TTM_AT_MARK && a->has_moment[0] != b->has_moment[0])
        return a->has_moment[0];
    return x != y ? x > y : allocs_of(a, choice) > allocs_of(b, choice);
}

/* Everything that is left: what the lines of other processes tell. */
static const struct ttm_report_choice everything = {.devices.is_all = true, .region = -1};

/* Of several processes the worst is shown whole, the others in a line each. */
static void put_other(struct sheet *sheet, const struct ttm_report_process *process)
{
    char allocs[TTM_NUMBER_SIZE], bytes[TTM_NUMBER_SIZE];
    const uint64_t suspects = suspect_bytes(process, &everything);

    ttm_text_format(sheet->out, "%9d  ", process->pid);
    struct ttm_text safe;
    ttm_text_init(&safe);
    ttm_terminal_command(&safe, process->command);
    put_columns(sheet, ttm_text_string(&safe), 30);
    ttm_text_format(sheet->out, " %s allocations, suspects %s\n",
                    ttm_format_count(process->allocs, allocs),
                    suspects ? ttm_format_bytes(suspects, bytes) : "none");
    sheet->out->failed |= safe.failed;
    ttm_text_done(&safe);
}

#define OTHERS_SHOWN 6

static uint32_t others_of(const struct sheet *sheet, const struct ttm_report_process *shown)
{
    uint32_t others = 0;

    for (uint32_t i = 0; i < sheet->report->process_count; i++)
        others += &sheet->report->processes[i] != shown &&
                  ttm_report_has_process(sheet->choice, &sheet->report->processes[i]);
    return others;
}

/* Suspects of processes that are not on the screen. */
static uint32_t suspects_elsewhere(struct sheet *sheet, const struct ttm_report_process *shown)
{
    uint32_t sum = 0;

    for (uint32_t i = 0; i < sheet->report->process_count; i++) {
        const struct ttm_report_process *process = &sheet->report->processes[i];
        uint32_t suspects = 0;
        if (process != shown)
            sheet->out->failed |= ttm_report_suspects(&everything, process, &suspects) < 0;
        sum += suspects;
    }
    return sum;
}

static void put_unchosen(struct sheet *sheet, const struct ttm_report_process *shown)
{
    const uint32_t suspects = suspects_elsewhere(sheet, shown);

    if (suspects > 0)
        ttm_text_format(sheet->out, "\n  %u %s of other processes %s not shown\n", suspects,
                        plural(suspects, "suspect", "suspects"), suspects == 1 ? "is" : "are");
}

static void put_others(struct sheet *sheet, const struct ttm_report_process *shown)
{
    const uint32_t others = others_of(sheet, shown);
    uint32_t put_count = 0;

    if (others == 0)
        return;
    ttm_text_format(sheet->out, "\n  %u more %s (--pid PID shows one, --all all)\n", others,
                    plural(others, "process", "processes"));
    for (uint32_t i = 0; i < sheet->report->process_count && put_count < OTHERS_SHOWN; i++) {
        const struct ttm_report_process *process = &sheet->report->processes[i];
        if (process == shown || !ttm_report_has_process(sheet->choice, process))
            continue;
        put_other(sheet, process);
        put_count++;
    }
}

static const struct ttm_report_process *find_worst(const struct ttm_report *report,
                                                   const struct ttm_report_choice *choice)
{
    const struct ttm_report_process *worst = NULL;

    for (uint32_t i = 0; i < report->process_count; i++) {
        const struct ttm_report_process *process = &report->processes[i];
        if (ttm_report_has_process(choice, process) && (!worst || is_worse(process, worst, choice)))
            worst = process;
    }
    return worst;
}

bool ttm_report_has_findings(const struct ttm_report *report)
{
    const struct ttm_report_process *worst = find_worst(report, &everything);
    struct ttm_root_causes causes = {0};

    if (ttm_report_leaked_bytes(report) > 0)
        return true;
    const bool has_causes =
        worst && ttm_root_causes_find(worst, NULL, NULL, &causes) == 0 && causes.count > 0;
    ttm_root_causes_done(&causes);
    return has_causes;
}

int ttm_report_remains_text(const struct ttm_report *report, const char *path,
                            const struct ttm_terminal *terminal, size_t rows, struct ttm_text *out)
{
    struct ttm_source_lines sources = {.report = report};
    struct sheet sheet = {
        .report = report,
        .sources = &sources,
        .choice = &everything,
        .process = find_worst(report, &everything),
        .terminal = terminal,
        .out = out,
        .path = path,
        .rows = rows,
        .is_brief = rows < ROWS_BRIEF,
    };
    const int r = sheet.process ? ttm_report_origins(&sheet) : 0;

    return r < 0 || ttm_text_failed(out) ? -ENOMEM : 0;
}

int ttm_report_text(const struct ttm_report *report, const struct ttm_report_choice *choice,
                    const char *path, const struct ttm_terminal *terminal, struct ttm_text *out)
{
    struct ttm_source_lines sources = {.report = report,
                                       .reads_any_file = choice->reads_any_source};
    struct sheet sheet = {.report = report,
                          .choice = choice,
                          .sources = &sources,
                          .terminal = terminal,
                          .out = out,
                          .path = path};
    const struct ttm_report_process *worst = find_worst(report, choice);
    int r = 0;

    if (!worst) {
        const bool is_whole = report->info.is_finished || report->info.is_being_written;
        ttm_text_append(out, is_whole ? "nothing was recorded: no program reported\n"
                                      : "no program is in the recording\n");
        put_flaws(&sheet);
        return ttm_text_failed(out) ? -ENOMEM : 0;
    }
    /* But for the last two lines, and a prompt; what is no terminal can be a little longer. */
    sheet.rows = !terminal->is_terminal ? ROWS_ELSEWHERE
                 : terminal->rows > 3   ? terminal->rows - 3
                                        : 1;
    const uint32_t others = others_of(&sheet, worst);
    const size_t others_rows =
        others == 0 ? 0 : 2 + (others < OTHERS_SHOWN ? others : OTHERS_SHOWN);
    if (!choice->is_unfolded)
        sheet.rows = sheet.rows > others_rows ? sheet.rows - others_rows : 1;
    for (uint32_t i = 0; r == 0 && i < report->process_count; i++) {
        const struct ttm_report_process *process = &report->processes[i];
        if (!ttm_report_has_process(choice, process) || (process != worst && !choice->is_unfolded))
            continue;
        sheet.process = process;
        r = put_process(&sheet);
        if (choice->is_unfolded && i + 1 < report->process_count)
            put(&sheet, "\n");
    }
    sheet.process = worst;
    if (!choice->is_unfolded)
        put_others(&sheet, worst);
    if (choice->pid != 0)
        put_unchosen(&sheet, worst);
    put_left_out(&sheet);
    put_next(&sheet);
    return r < 0 || ttm_text_failed(out) ? -ENOMEM : 0;
}
