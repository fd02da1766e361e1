/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <string.h>

#include "analysis/flame.h"
#include "base/log.h"
#include "cli/command.h"
#include "cli/export_debug_log.h"
#include "cli/export_file.h"
#include "cli/export_recording.h"
#include "cli/options.h"
#include "cli/overwrite.h"
#include "cli/page.h"
#include "cli/recording_file.h"

enum { OPTION_FORMAT = 256, OPTION_OF, OPTION_BY, OPTION_SOURCE };

static const struct ttm_option options[] = {
    {.id = OPTION_FORMAT,
     .name = "format",
     .arg = "FORMAT",
     .help = "folded, speedscope, html, debug-log or ttmem",
     .choices = "folded speedscope html debug-log ttmem"},
    {.id = 'o', .name = "output", .arg = "OUT", .help = "where to write it; - is stdout"},
    {.id = OPTION_OF,
     .name = "of",
     .arg = "WHAT",
     .help = "remaining (the default), peak or allocated",
     .choices = "remaining peak allocated"},
    {.id = OPTION_BY,
     .name = "by",
     .arg = "UNIT",
     .help = "bytes (the default) or count",
     .choices = "bytes count"},
    {.id = OPTION_SOURCE, .name = "source", .help = "html: source lines of files not yours, too"},
    TTM_OPTION_HELP_ROW,
    {0},
};

typedef int (*write_fn)(const struct ttm_report *report, const struct ttm_flame_options *options,
                        struct ttm_text *out);

struct wish {
    write_fn write;
    bool is_page; /* instead */
    bool reads_any_source;
    bool is_debug_log;
    bool is_copy;
    const char *output;
    struct ttm_flame_options flame;
};

static bool has_format(const struct wish *wish)
{
    return wish->write || wish->is_page || wish->is_debug_log || wish->is_copy;
}

static int take_option(const struct ttm_options *parsed, int id, struct wish *wish)
{
    static const char *const of[] = {"remaining", "peak", "allocated"};
    const char *value = parsed->value;

    if (id == 'o')
        wish->output = value;
    if (id == OPTION_SOURCE)
        wish->reads_any_source = true;
    if (id == OPTION_FORMAT) {
        wish->is_page = strcmp(value, "html") == 0;
        wish->is_debug_log = strcmp(value, "debug-log") == 0;
        wish->write = strcmp(value, "folded") == 0       ? ttm_flame_folded
                      : strcmp(value, "speedscope") == 0 ? ttm_flame_speedscope
                                                         : NULL;
        wish->is_copy = strcmp(value, "ttmem") == 0;
        return has_format(wish) ? 0 : ttm_options_complain(parsed, "'%s' is no format", value);
    }
    if (id == OPTION_BY) {
        wish->flame.is_count = strcmp(value, "count") == 0;
        if (!wish->flame.is_count && strcmp(value, "bytes") != 0)
            return ttm_options_complain(parsed, "'%s' is neither bytes nor count", value);
    }
    if (id != OPTION_OF)
        return 0;
    for (unsigned i = 0; i < sizeof(of) / sizeof(of[0]); i++) {
        if (strcmp(value, of[i]) == 0) {
            wish->flame.of = (enum ttm_flame_of)i;
            return 0;
        }
    }
    return ttm_options_complain(parsed, "'%s' is not remaining, peak or allocated", value);
}

static int write_text(int fd, void *arg)
{
    const struct ttm_text *text = arg;

    return ttm_export_bytes(fd, ttm_text_string(text), text->length);
}

static int export(const char *path, const struct wish *wish)
{
    const struct ttm_report_options wanted = {.wants_drawings = wish->is_page};
    struct ttm_report report = {0};
    struct ttm_source_lines sources = {.report = &report, .reads_any_file = wish->reads_any_source};
    struct ttm_text out;
    int status = ttm_recording_report(path, &wanted, &report);

    ttm_text_init(&out);
    if (status == TTM_EXIT_OK && (wish->is_page ? ttm_page_write(&report, path, &sources, &out)
                                                : wish->write(&report, &wish->flame, &out)) < 0) {
        ttm_log("cannot export '%s': %s", path, strerror(ENOMEM));
        status = TTM_EXIT_FAILED;
    } else if (status == TTM_EXIT_OK) {
        status = ttm_export_file(wish->output, write_text, &out);
        if (status == TTM_EXIT_OK && !wish->is_page) /* which says so at its top */
            ttm_recording_caution(path, &report.info);
        if (status == TTM_EXIT_OK && sources.left_out > 0)
            ttm_log(TTM_SOURCE_LEFT_OUT "; use --source");
    }
    ttm_text_done(&out);
    ttm_report_done(&report);
    return status;
}

static int run(int argc, char **argv)
{
    struct ttm_options parsed;
    struct wish wish = {0};
    int id, r = 0;

    ttm_options_init(&parsed, &ttm_command_export, argc, argv);
    while (r == 0 && (id = ttm_options_next(&parsed)) > 0)
        r = take_option(&parsed, id, &wish);
    if (r < 0 || id != TTM_OPTION_END)
        return r == 0 && id == TTM_OPTION_HELP ? TTM_EXIT_OK : TTM_EXIT_USAGE;
    char **rest = ttm_options_rest(&parsed);
    if (!rest[0] || rest[1] || !has_format(&wish) || !wish.output) {
        (void)ttm_options_complain(&parsed, !rest[0]             ? "which recording?"
                                            : rest[1]            ? "one recording, please"
                                            : !has_format(&wish) ? "which --format?"
                                                                 : "where to, with -o?");
        return TTM_EXIT_USAGE;
    }
    const bool is_stdout = strcmp(wish.output, "-") == 0;
    const int status =
        is_stdout ? TTM_EXIT_OK : ttm_overwrite_input(wish.output, rest[0], "recording");
    if (status != TTM_EXIT_OK)
        return status;
    if (wish.is_copy)
        return ttm_export_recording(rest[0], wish.output);
    if (wish.is_debug_log)
        return ttm_export_debug_log(rest[0], wish.output);
    return export(rest[0], &wish);
}

const struct ttm_command ttm_command_export = {
    .name = "export",
    .synopsis = "FILE --format FORMAT -o OUT [--of WHAT] [--by UNIT]\n"
                "                     [--source]",
    .summary = "Writes a recording as a page, or in a form that other tools read.",
    .details = "folded: flamegraph.pl, inferno; speedscope: https://www.speedscope.app;\n"
               "html: one page for any browser that needs nothing else and can be mailed;\n"
               "debug-log: the blocks of TT_BUFFER_DEBUG_LOG, which tt-mem import reads;\n"
               "ttmem: a recording that is whole, of one that is still being written.",
    .options = options,
    .run = run,
    .takes_operands = true,
};
