/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/options.h"

#include <ctype.h>
#include <errno.h>
#include <getopt.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "analysis/report.h"
#include "base/clock.h"
#include "base/text.h"

#define OPTIONS_MAX 32
#define COMPLAINT_SIZE 1024
#define SECONDS_MAX 1000000000u

/* getopt_long's own form of the table; one command is parsed at a time. */
static struct option long_options[OPTIONS_MAX + 1];

static bool may_lack_argument(const struct ttm_option *option)
{
    return option->arg && strncmp(option->arg, "[=", 2) == 0;
}

static int argument_of(const struct ttm_option *option)
{
    return may_lack_argument(option) ? optional_argument
           : option->arg             ? required_argument
                                     : no_argument;
}

void ttm_options_init(struct ttm_options *options, const struct ttm_command *command, int argc,
                      char **argv)
{
    size_t letters = 0, longs = 0;

    *options = (struct ttm_options){.command = command, .argc = argc, .argv = argv};
    if (command->takes_command)
        options->letters[letters++] = '+'; /* what comes behind its name is the program's */
    options->letters[letters++] = ':';     /* tell a missing argument from an unknown option */
    for (const struct ttm_option *o = command->options; o->id && longs < OPTIONS_MAX; o++) {
        if (o->name)
            long_options[longs++] = (struct option){
                .name = o->name,
                .has_arg = argument_of(o),
                .val = o->id,
            };
        if (o->id < 256) {
            options->letters[letters++] = (char)o->id;
            if (o->arg)
                options->letters[letters++] = ':';
        }
    }
    long_options[longs] = (struct option){0};
    opterr = 0;
    optind = 0; /* glibc: start anew */
}

int ttm_options_complain(const struct ttm_options *options, const char *format, ...)
{
    char text[COMPLAINT_SIZE], safe[COMPLAINT_SIZE]; /* what was typed may be somebody's text */
    va_list args;

    va_start(args, format);
    (void)vsnprintf(text, sizeof(text), format, args);
    va_end(args);
    (void)ttm_text_copy_safe(safe, sizeof(safe), text);
    (void)fprintf(stderr, "tt-mem %s: %s (see tt-mem %s --help)\n", options->command->name, safe,
                  options->command->name);
    return TTM_OPTION_WRONG;
}

int ttm_options_next(struct ttm_options *options)
{
    const int id = getopt_long(options->argc, options->argv, options->letters, long_options, NULL);

    options->value = optarg;
    if (id == 'h') {
        ttm_options_print_help(options->command);
        return TTM_OPTION_HELP;
    }
    if (id == '?' || id == ':') {
        const char *word = optind > 0 ? options->argv[optind - 1] : "";
        if (id == ':')
            return ttm_options_complain(options, "option '%s' needs a value", word);
        if (optopt && optopt < 256 && strncmp(word, "--", 2) != 0)
            return ttm_options_complain(options, "unknown option '-%c'", optopt);
        return ttm_options_complain(options, "unknown or ambiguous option '%s'", word);
    }
    if (id >= 0)
        return id;
    if (optind < options->argc && !options->command->takes_command &&
        !options->command->takes_operands)
        return ttm_options_complain(options, "'%s' is one word too many", options->argv[optind]);
    return TTM_OPTION_END;
}

char **ttm_options_rest(const struct ttm_options *options)
{
    return options->argv + optind;
}

/* A plain decimal number at the start of 'text'; '*ret_end' is behind it. */
static int parse_number(const char *text, uint64_t *ret, const char **ret_end)
{
    char *end;

    if (!isdigit((unsigned char)text[0]))
        return -EINVAL;
    errno = 0;
    const unsigned long long value = strtoull(text, &end, 10);
    if (errno != 0)
        return -errno;
    *ret = value;
    *ret_end = end;
    return 0;
}

int ttm_options_number(const struct ttm_options *options, const char *what, uint64_t min,
                       uint64_t max, uint64_t *ret)
{
    const char *end = "";

    if (parse_number(options->value, ret, &end) < 0 || *end != '\0' || *ret < min || *ret > max)
        return ttm_options_complain(options, "'%s' is not %s from %llu to %llu", options->value,
                                    what, (unsigned long long)min, (unsigned long long)max);
    return 0;
}

/* What a unit stands for; 0 for what is none. "MB" are the decimal ones, as in the marks of pytest. */
static uint64_t parse_unit(const char *unit)
{
    static const char letters[] = "KMGT";
    const char *letter = *unit ? strchr(letters, toupper((unsigned char)*unit)) : NULL;
    uint64_t bytes = 1;

    if (!letter)
        return *unit == '\0' || strcasecmp(unit, "B") == 0 ? 1 : 0;
    const bool is_decimal = strcasecmp(unit + 1, "B") == 0;
    if (!is_decimal && unit[1] != '\0' && strcasecmp(unit + 1, "iB") != 0)
        return 0;
    for (const char *at = letters; at <= letter; at++)
        bytes *= is_decimal ? 1000 : 1024;
    return bytes;
}

int ttm_options_bytes(const struct ttm_options *options, uint64_t *ret)
{
    const char *end = "";
    uint64_t number = 0;
    const uint64_t unit = parse_number(options->value, &number, &end) < 0 ? 0 : parse_unit(end);

    if (unit == 0 || number > (uint64_t)INT64_MAX / unit)
        return ttm_options_complain(
            options, "'%s' is not a number of bytes such as 4096, 64K or 2M", options->value);
    *ret = number * unit;
    return 0;
}

int ttm_options_seconds(const struct ttm_options *options, uint64_t *ret_ns)
{
    const char *at = options->value;
    uint64_t seconds = 0, unit = TTM_NS_PER_S;
    bool is_right = parse_number(at, &seconds, &at) == 0 && seconds <= SECONDS_MAX;

    *ret_ns = seconds * TTM_NS_PER_S;
    if (is_right && *at == '.') {
        for (at++; isdigit((unsigned char)*at); at++) {
            unit /= 10;
            *ret_ns += unit * (uint64_t)(*at - '0');
        }
        is_right = unit < TTM_NS_PER_S;
    }
    if (is_right && *at == '\0')
        return 0;
    return ttm_options_complain(options, "'%s' is not a number of seconds such as 30 or 0.5",
                                options->value);
}

int ttm_options_leak_start(const struct ttm_options *options, int id,
                           struct ttm_report_options *ret)
{
    if (id == TTM_OPTION_AFTER_MARK)
        ret->after_mark = options->value;
    ret->has_warmup |= id == TTM_OPTION_WARMUP;
    if (ret->after_mark && ret->has_warmup)
        return ttm_options_complain(options, "--after-mark and --warmup exclude each other");
    return ret->has_warmup ? ttm_options_seconds(options, &ret->warmup_ns) : 0;
}

int ttm_options_devices(const struct ttm_options *options, struct ttm_device_filter *filter)
{
    const char *at = options->value;

    filter->is_all = false;
    while (true) {
        uint64_t id = 0;
        if (parse_number(at, &id, &at) < 0 || id >= TTM_DEVICE_COUNT || (*at && *at != ','))
            return ttm_options_complain(options, "'%s' is not a list of device ids from 0 to %d",
                                        options->value, TTM_DEVICE_COUNT - 1);
        ttm_device_filter_add(filter, (unsigned)id);
        if (*at == '\0')
            return 0;
        at++;
    }
}

void ttm_options_print_help(const struct ttm_command *command)
{
    printf("usage: tt-mem %s %s\n\n%s\n", command->name, command->synopsis, command->summary);
    if (command->details)
        printf("\n%s\n", command->details);
    printf("\noptions:\n");
    for (const struct ttm_option *o = command->options; o->id; o++) {
        char left[64];
        if (o->is_hidden)
            continue;
        (void)snprintf(left, sizeof(left), "%c%c%s%s%s%s%s", o->id < 256 ? '-' : ' ',
                       o->id < 256 ? o->id : ' ', o->name ? (o->id < 256 ? ", --" : "  --") : "",
                       o->name ? o->name : "", o->arg && !may_lack_argument(o) ? " " : "",
                       o->arg ? o->arg : "", "");
        printf("  %-26s %s\n", left, o->help);
    }
    printf("\nman tt-mem-%s tells more.\n", command->name);
}
