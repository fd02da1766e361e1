/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/dump_text.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/clock.h"
#include "base/seed.h"
#include "cli/filter_words.h"
#include "cli/histogram.h"
#include "cli/origin_text.h"
#include "cli/runtime.h"

#define FOLDED_ROWS 8

/* One life on one device: what a row shows. */
struct row {
    const struct ttm_answer_process *process;
    const struct ttm_life_row *life;
    const struct ttm_answer_site *site;
};

struct dump {
    const struct ttm_answer *answer;
    const struct ttm_dump_choice *choice;
    const struct ttm_terminal *terminal;
    struct ttm_text *out;
    struct row *rows; /* of the device and region at hand */
    size_t row_count;
    size_t row_room;
    struct ttm_histogram histogram; /* over all that was listed */
    bool failed;
};

bool ttm_dump_has_process(const struct ttm_dump_choice *choice,
                          const struct ttm_answer_process *process)
{
    return choice->pid == 0 || choice->pid == process->row.pid;
}

static bool is_on(const struct ttm_answer_site *site, uint16_t device)
{
    for (uint16_t i = 0; i < site->device_count; i++) {
        if (site->devices[i] == device)
            return true;
    }
    return false;
}

static void add_row(struct dump *dump, const struct row *row)
{
    if (dump->row_count == dump->row_room) {
        const size_t room = dump->row_room ? dump->row_room * 2 : 256;
        struct row *grown = realloc(dump->rows, room * sizeof(grown[0]));
        if (!grown) {
            dump->failed = true;
            return;
        }
        dump->rows = grown;
        dump->row_room = room;
    }
    dump->rows[dump->row_count++] = *row;
}

/* Largest first, then oldest, then by address, so that two dumps of one state are equal. */
static int compare_rows(const void *a, const void *b)
{
    const struct ttm_life_row *x = ((const struct row *)a)->life;
    const struct ttm_life_row *y = ((const struct row *)b)->life;

    if (x->bytes != y->bytes)
        return x->bytes < y->bytes ? 1 : -1;
    if (x->age_ns != y->age_ns)
        return x->age_ns < y->age_ns ? 1 : -1;
    return x->address < y->address ? -1 : x->address > y->address;
}

static void collect_rows(struct dump *dump, uint16_t device, unsigned region)
{
    dump->row_count = 0;
    for (size_t p = 0; p < dump->answer->process_count; p++) {
        const struct ttm_answer_process *process = &dump->answer->processes[p];
        if (!ttm_dump_has_process(dump->choice, process))
            continue;
        for (size_t i = 0; i < process->live_count; i++) {
            const struct ttm_answer_site *site = &process->sites[process->lives[i].site];
            if (site->region != region || !is_on(site, device))
                continue;
            const struct row row = {.process = process, .life = &process->lives[i], .site = site};
            add_row(dump, &row);
        }
    }
    if (dump->row_count > 0)
        qsort(dump->rows, dump->row_count, sizeof(dump->rows[0]), compare_rows);
}

static const char *noun_of(unsigned region, uint64_t count)
{
    if (region == TTM_REGION_KERNEL)
        return count == 1 ? "kernel " : "kernels";
    return count == 1 ? "buffer " : "buffers";
}

static void put_row(struct dump *dump, const struct row *row)
{
    char size[TTM_NUMBER_SIZE], age[TTM_NUMBER_SIZE], address[24] = "-";

    if (row->life->address != 0) /* kernels have none that is told */
        (void)snprintf(address, sizeof(address), "%#" PRIx64, row->life->address);
    ttm_text_format(dump->out, "  %7d  %11s  %9s  %12s  ", row->process->row.pid,
                    ttm_format_duration(row->life->age_ns, age),
                    ttm_format_bytes(row->life->bytes, size), address);
    if (row->site->region == TTM_REGION_KERNEL)
        ttm_text_format(dump->out, "%s kernel ", ttm_kernel_kind_name(row->site->kind));
    if (row->site->flags & TTM_SITE_PROGRAM)
        ttm_text_format(dump->out, "of program %" PRIu64 " ", row->life->id);
    else if (row->life->id != row->life->address)
        ttm_text_format(dump->out, "id %" PRIu64 " ", row->life->id);
    ttm_native_names_choose(dump->choice->names, row->process->row.pid);
    ttm_origin_text(dump->out, ttm_answer_origin(row->process, row->site->origin),
                    dump->choice->names);
    if (ttm_is_buffer_of_program(row->site->region, row->site->kind))
        ttm_text_append(dump->out, "kept by the program cache");
    if (row->site->flags & TTM_SITE_ALIAS)
        ttm_text_append(dump->out, "view, adds nothing");
    /* Drop the space that separates from what is not there. */
    while (dump->out->length > 0 && dump->out->data[dump->out->length - 1] == ' ')
        dump->out->data[--dump->out->length] = '\0';
    ttm_text_append(dump->out, "\n");
}

static void put_rows(struct dump *dump)
{
    size_t shown = dump->row_count;
    char count[TTM_NUMBER_SIZE];

    if (!dump->choice->is_unfolded && dump->row_count > FOLDED_ROWS + 1)
        shown = FOLDED_ROWS;
    ttm_terminal_colour(dump->terminal, dump->out, TTM_DIM);
    ttm_text_append(dump->out, "      pid          age       size       address\n");
    ttm_terminal_colour(dump->terminal, dump->out, TTM_PLAIN);
    for (size_t i = 0; i < shown; i++)
        put_row(dump, &dump->rows[i]);
    if (shown < dump->row_count)
        ttm_text_format(dump->out, "  %*s%s %s more: tt-mem dump --all\n",
                        dump->terminal->has_utf8 ? 6 : 4, "", ttm_terminal_ellipsis(dump->terminal),
                        ttm_format_count(dump->row_count - shown, count));
}

/* Sums of one region on one device over the chosen processes that are tracked, shown or not. */
static struct ttm_totals sum_totals(const struct dump *dump, uint16_t device, unsigned region,
                                    uint64_t kinds[TTM_KERNEL_KIND_COUNT])
{
    struct ttm_totals sum = {0};

    for (size_t p = 0; p < dump->answer->process_count; p++) {
        const struct ttm_answer_process *process = &dump->answer->processes[p];
        for (size_t d = 0; d < process->device_count; d++) {
            const struct ttm_process_device_row *own = &process->devices[d];
            if (own->device_id != device || !ttm_dump_has_process(dump->choice, process) ||
                ttm_runtime_is_source(process))
                continue;
            sum.count += own->totals.region[region].count;
            sum.bytes += own->totals.region[region].bytes;
            sum.footprint_bytes += ttm_device_used(&own->totals, region);
            for (size_t k = 0; k < TTM_KERNEL_KIND_COUNT; k++)
                kinds[k] += own->totals.kernel_bytes[k];
        }
    }
    return sum;
}

static void put_region_head(struct dump *dump, const struct ttm_device_row *device, unsigned region,
                            const struct ttm_totals *sum)
{
    const uint64_t capacity = device->capacity_bytes[region];
    char count[TTM_NUMBER_SIZE], bytes[TTM_NUMBER_SIZE], foot[TTM_NUMBER_SIZE];

    ttm_terminal_colour(dump->terminal, dump->out, TTM_BOLD);
    ttm_text_format(dump->out, "  %-13s", ttm_region_name(region));
    ttm_terminal_colour(dump->terminal, dump->out, TTM_PLAIN);
    /* Circular buffers of several programs share memory: the sum of footprints is no use. */
    ttm_text_format(dump->out, " %7s %s %10s, %9s %10s", ttm_format_count(sum->count, count),
                    noun_of(region, sum->count), ttm_format_bytes(sum->bytes, bytes),
                    region == TTM_REGION_CB ? "resident" : "footprint",
                    ttm_format_bytes(sum->footprint_bytes, foot));
    if (capacity > 0)
        ttm_text_format(dump->out, " of %s", ttm_format_bytes(capacity, bytes));
    ttm_text_append(dump->out, "\n");
}

static void put_kernel_kinds(struct dump *dump, const uint64_t kinds[TTM_KERNEL_KIND_COUNT])
{
    char bytes[TTM_NUMBER_SIZE];

    ttm_text_append(dump->out, "  ");
    for (unsigned k = 0; k < TTM_KERNEL_KIND_COUNT; k++)
        ttm_text_format(dump->out, "%s%s %s", k ? ttm_terminal_dot(dump->terminal) : "",
                        ttm_kernel_kind_name(k), ttm_format_bytes(kinds[k], bytes));
    ttm_text_append(dump->out, "\n");
}

static void put_region(struct dump *dump, const struct ttm_device_row *device, unsigned region)
{
    uint64_t kinds[TTM_KERNEL_KIND_COUNT] = {0};
    const struct ttm_totals sum = sum_totals(dump, device->id, region, kinds);

    collect_rows(dump, device->id, region);
    if (sum.count == 0 && dump->row_count == 0)
        return;
    put_region_head(dump, device, region, &sum);
    if (region == TTM_REGION_KERNEL)
        put_kernel_kinds(dump, kinds);
    if (dump->row_count > 0)
        put_rows(dump);
    if (region == TTM_REGION_KERNEL)
        return; /* the sizes below are those of buffers */
    for (size_t i = 0; i < dump->row_count; i++) {
        if (!(dump->rows[i].site->flags & TTM_SITE_ALIAS))
            ttm_histogram_add(&dump->histogram, dump->rows[i].life->bytes,
                              dump->rows[i].life->age_ns);
    }
}

/* What the runtime counts of one process on a device; false when that is nothing. */
static bool has_runtime(const struct dump *dump, const struct ttm_answer_process *process,
                        const struct ttm_process_device_row *own, unsigned device)
{
    bool has_bytes = false;

    for (unsigned r = 0; r < TTM_REGION_COUNT; r++)
        has_bytes |= own->totals.region[r].bytes > 0;
    return has_bytes && own->device_id == device && ttm_runtime_is_source(process) &&
           !dump->choice->is_kernels && ttm_dump_has_process(dump->choice, process);
}

static void put_runtime(struct dump *dump, const struct ttm_answer_process *process,
                        const struct ttm_device_totals *totals)
{
    const char *separator = "";

    ttm_text_format(dump->out, "  %-13s %8d  ", "runtime", process->row.pid);
    for (unsigned r = 0; r < TTM_REGION_COUNT; r++) {
        char bytes[TTM_NUMBER_SIZE];
        if (totals->region[r].bytes == 0)
            continue;
        ttm_text_format(dump->out, "%s%s %s", separator, ttm_region_name(r),
                        ttm_format_bytes(totals->region[r].bytes, bytes));
        separator = ttm_terminal_dot(dump->terminal);
    }
    ttm_text_append(dump->out, "\n");
}

/* Calls it for each process that the runtime alone counts on that device; returns how many. */
static size_t each_runtime(struct dump *dump, unsigned device,
                           void (*fn)(struct dump *dump, const struct ttm_answer_process *process,
                                      const struct ttm_device_totals *totals))
{
    size_t count = 0;

    for (size_t p = 0; p < dump->answer->process_count; p++) {
        const struct ttm_answer_process *process = &dump->answer->processes[p];
        for (size_t d = 0; d < process->device_count; d++) {
            if (!has_runtime(dump, process, &process->devices[d], device))
                continue;
            count++;
            if (fn)
                fn(dump, process, &process->devices[d].totals);
        }
    }
    return count;
}

static bool holds_anything(struct dump *dump, const struct ttm_device_row *device)
{
    for (unsigned r = 0; r < TTM_REGION_COUNT; r++) {
        uint64_t kinds[TTM_KERNEL_KIND_COUNT] = {0};
        if (dump->choice->is_kernels && r != TTM_REGION_KERNEL)
            continue;
        if (sum_totals(dump, device->id, r, kinds).count > 0)
            return true;
    }
    return each_runtime(dump, device->id, NULL) > 0;
}

static void put_device(struct dump *dump, const struct ttm_device_row *device)
{
    ttm_terminal_colour(dump->terminal, dump->out, TTM_BOLD);
    ttm_text_format(dump->out, "device %u", device->id);
    ttm_terminal_colour(dump->terminal, dump->out, TTM_PLAIN);
    if (device->board[0])
        ttm_text_append(dump->out, "  ");
    ttm_text_append_safe(dump->out, device->board);
    if (device->arch != TTM_ARCH_UNKNOWN)
        ttm_text_format(dump->out, "  %s", ttm_arch_name(device->arch));
    ttm_text_append(dump->out, "\n");
    for (unsigned r = 0; r < TTM_REGION_COUNT; r++) {
        if (!dump->choice->is_kernels || r == TTM_REGION_KERNEL)
            put_region(dump, device, r);
    }
    (void)each_runtime(dump, device->id, put_runtime);
}

/* What one process holds on the chosen devices. */
struct holding {
    const struct ttm_answer_process *process;
    uint64_t count;
    uint64_t bytes;
};

static struct holding holding_of(const struct dump *dump, const struct ttm_answer_process *process)
{
    struct holding holding = {.process = process};

    if (dump->choice->is_kernels && ttm_runtime_is_source(process))
        return holding;
    for (size_t d = 0; d < process->device_count; d++) {
        const struct ttm_process_device_row *own = &process->devices[d];
        if (!ttm_device_filter_has(&dump->choice->devices, own->device_id))
            continue;
        for (size_t r = 0; r < TTM_REGION_COUNT; r++) {
            if (dump->choice->is_kernels && r != TTM_REGION_KERNEL)
                continue;
            holding.count += own->totals.region[r].count;
            holding.bytes += own->totals.region[r].bytes;
        }
    }
    return holding;
}

/* The runtime does not tell how many. */
static bool holds(const struct holding *holding)
{
    return ttm_runtime_is_source(holding->process) ? holding->bytes > 0 : holding->count > 0;
}

static int compare_holdings(const void *a, const void *b)
{
    const struct holding *x = a;
    const struct holding *y = b;

    if (x->bytes != y->bytes)
        return x->bytes < y->bytes ? 1 : -1;
    return x->process->row.pid - y->process->row.pid;
}

static void put_holding(struct dump *dump, const struct holding *holding)
{
    const struct ttm_process_row *row = &holding->process->row;
    const bool is_runtime = ttm_runtime_is_source(holding->process);
    char count[TTM_NUMBER_SIZE], bytes[TTM_NUMBER_SIZE];

    ttm_text_format(dump->out, "  %8d  %10s  %7s %s  ", row->pid,
                    ttm_format_bytes(holding->bytes, bytes),
                    is_runtime ? "-" : ttm_format_count(holding->count, count),
                    is_runtime            ? "runtime    "
                    : holding->count == 1 ? "allocation "
                                          : "allocations");
    ttm_terminal_command(dump->out, row->command);
    if (!row->has_lives && !is_runtime)
        ttm_text_append(dump->out, "  (another user's: totals only)");
    ttm_text_append(dump->out, "\n");
}

static void put_processes(struct dump *dump)
{
    const size_t n = dump->answer->process_count;
    struct holding *holdings = calloc(n ? n : 1, sizeof(holdings[0]));

    if (!holdings) {
        dump->failed = true;
        return;
    }
    for (size_t p = 0; p < n; p++)
        holdings[p] = holding_of(dump, &dump->answer->processes[p]);
    qsort(holdings, n, sizeof(holdings[0]), compare_holdings);
    ttm_terminal_colour(dump->terminal, dump->out, TTM_BOLD);
    ttm_text_append(dump->out, "Per process\n");
    ttm_terminal_colour(dump->terminal, dump->out, TTM_PLAIN);
    for (size_t p = 0; p < n; p++) {
        if (holds(&holdings[p]) && ttm_dump_has_process(dump->choice, holdings[p].process))
            put_holding(dump, &holdings[p]);
    }
    free(holdings);
}

static void put_finding(struct dump *dump, uint64_t count, const char *one, const char *many,
                        const char *meaning)
{
    char text[TTM_NUMBER_SIZE];

    if (count > 0)
        ttm_text_format(dump->out, "%s %s: %s\n", ttm_format_count(count, text),
                        count == 1 ? one : many, meaning);
}

/* What the reader should know before trusting the numbers. */
static void put_findings(struct dump *dump)
{
    uint64_t unknown = 0, ambiguous = 0, replaced = 0, refused = 0, left_out = 0;

    for (size_t p = 0; p < dump->answer->process_count; p++) {
        const struct ttm_process_row *row = &dump->answer->processes[p].row;
        if (!ttm_dump_has_process(dump->choice, &dump->answer->processes[p]))
            continue;
        unknown += row->unknown_frees;
        ambiguous += row->ambiguous_frees;
        replaced += row->replaced;
        refused += row->refused;
        left_out += row->notes_left_out;
    }
    put_finding(dump, unknown, "free of something unknown", "frees of something unknown",
                "allocated before tracking began, or freed twice");
    put_finding(dump, ambiguous, "free fitted", "frees fitted",
                "several regions, and the newest was taken");
    put_finding(dump, replaced, "allocation was replaced", "allocations were replaced",
                "an address was allocated again without a free");
    put_finding(dump, refused, "message was refused", "messages were refused", "see tt-mem status");
    put_finding(dump, left_out, "name or context had no room", "names and contexts had no room",
                "later ones are missing");
}

static size_t count_holders(const struct dump *dump)
{
    size_t holders = 0;

    for (size_t p = 0; p < dump->answer->process_count; p++) {
        const struct ttm_answer_process *process = &dump->answer->processes[p];
        const struct holding holding = holding_of(dump, process);
        holders += ttm_dump_has_process(dump->choice, process) && holds(&holding);
    }
    return holders;
}

static void put_uptime(struct dump *dump)
{
    char uptime[TTM_NUMBER_SIZE];

    ttm_text_append(dump->out, ttm_terminal_dot(dump->terminal));
    if (ttm_runtime_is_alone(dump->answer))
        ttm_text_append(dump->out, "no server is running\n");
    else
        ttm_text_format(dump->out, "server up %s\n",
                        ttm_format_duration(dump->answer->moment.uptime_ns, uptime));
}

static void put_headline(struct dump *dump, size_t devices)
{
    const size_t holders = count_holders(dump);

    ttm_text_format(dump->out, "%zu process%s hold%s memory on %zu device%s", holders,
                    holders == 1 ? "" : "es", holders == 1 ? "s" : "", devices,
                    devices == 1 ? "" : "s");
    put_uptime(dump);
}

/* Why there is nothing of what was chosen, if it is not there at all; "" else. */
static const char *absence_of(const struct dump *dump)
{
    const struct ttm_answer *answer = dump->answer;
    bool has_process = false, has_device = false;

    for (size_t p = 0; p < answer->process_count; p++)
        has_process |= ttm_dump_has_process(dump->choice, &answer->processes[p]);
    for (size_t i = 0; i < answer->device_count; i++)
        has_device |= ttm_device_filter_has(&dump->choice->devices, answer->devices[i].id);
    if (dump->choice->pid != 0 && !has_process)
        return ": it does not report";
    return !dump->choice->devices.is_all && !has_device ? ": nobody has reported that device" : "";
}

/* What others hold, so that nothing in a part is not taken for nothing at all. */
static void put_elsewhere(struct dump *dump)
{
    const struct ttm_dump_choice all = {.devices.is_all = true,
                                        .is_kernels = dump->choice->is_kernels};
    struct dump whole = *dump;

    whole.choice = &all;
    const size_t holders = count_holders(&whole);
    if (holders > 0)
        ttm_text_format(dump->out, "%zu process%s memory elsewhere: tt-mem dump\n", holders,
                        holders == 1 ? " holds" : "es hold");
}

static void put_nothing(struct dump *dump)
{
    const struct ttm_dump_choice *choice = dump->choice;
    const bool is_all = choice->pid == 0 && choice->devices.is_all;

    ttm_text_append(dump->out, "nothing remains");
    ttm_filter_words(&choice->devices, -1, dump->out);
    if (choice->pid != 0)
        ttm_text_format(dump->out, " of process %d", choice->pid);
    ttm_text_append(dump->out, !is_all              ? absence_of(dump)
                               : choice->is_kernels ? ": no kernel is allocated"
                                                    : ": no device memory is allocated");
    put_uptime(dump);
    if (!is_all)
        put_elsewhere(dump);
    put_findings(dump);
}

static void put_all(struct dump *dump)
{
    const struct ttm_answer *answer = dump->answer;
    size_t devices = 0, counted = 0;

    for (size_t i = 0; i < answer->device_count; i++)
        devices += ttm_device_filter_has(&dump->choice->devices, answer->devices[i].id) &&
                   holds_anything(dump, &answer->devices[i]);
    if (devices == 0) {
        put_nothing(dump);
        return;
    }
    put_headline(dump, devices);
    for (size_t i = 0; i < answer->device_count; i++) {
        const struct ttm_device_row *device = &answer->devices[i];
        if (ttm_device_filter_has(&dump->choice->devices, device->id) &&
            holds_anything(dump, device)) {
            put_device(dump, device);
            counted += each_runtime(dump, device->id, NULL);
        }
    }
    if (dump->histogram.count > 0)
        ttm_histogram_text(&dump->histogram, dump->terminal, dump->out);
    put_processes(dump);
    put_findings(dump);
    if (counted > 0)
        ttm_text_append(dump->out, TTM_RUNTIME_HINT);
}

int ttm_dump_text(const struct ttm_answer *answer, const struct ttm_dump_choice *choice,
                  const struct ttm_terminal *terminal, struct ttm_text *out)
{
    struct dump dump = {
        .answer = answer,
        .choice = choice,
        .terminal = terminal,
        .out = out,
    };

    ttm_histogram_init(&dump.histogram, ttm_seed_random());
    put_all(&dump);
    const bool failed = dump.failed || dump.histogram.failed || ttm_text_failed(out);
    ttm_histogram_done(&dump.histogram);
    free(dump.rows);
    return failed ? -ENOMEM : 0;
}
