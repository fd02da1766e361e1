/* SPDX-License-Identifier: Apache-2.0 */
#include "symbols/demangle.h"

#include <ctype.h>
#include <dlfcn.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

typedef char *(*demangle_fn)(const char *mangled, char *buf, size_t *length, int *status);

static demangle_fn demangler;

static void load_demangler(void)
{
    void *library = dlopen("libstdc++.so.6", RTLD_LAZY | RTLD_LOCAL);

    /* Never closed: it stays in use. */
    if (library)
        *(void **)&demangler = dlsym(library, "__cxa_demangle");
    /* cppcheck-suppress resourceLeak ; as said */
}

char *ttm_demangle(const char *name)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    int status = -1;

    /* "_Z" alone: __cxa_demangle() also takes "i" for the type int. */
    if (strncmp(name, "_Z", 2) != 0 || strnlen(name, TTM_DEMANGLE_MAX) == TTM_DEMANGLE_MAX)
        return strdup(name);
    (void)pthread_once(&once, load_demangler);
    if (!demangler)
        return strdup(name);
    char *full = demangler(name, NULL, NULL, &status);
    return full && status == 0 ? full : strdup(name);
}

/*
 * Works on the text as a demangler prints it: groups of brackets are left out, but
 * for what belongs to a name. A blank inside a name is kept as KEPT_BLANK until
 * the return type, which ends in a blank, has been cut off.
 */
#define KEPT_BLANK '\1'

struct cutter {
    const char *at;
    char *out;
};

static bool is_name_char(char c)
{
    return isalnum((unsigned char)c) || c == '_' || c == '$';
}

static bool begins_with(const char *text, const char *prefix)
{
    return strncmp(text, prefix, strlen(prefix)) == 0;
}

/* Moves behind a group that begins at 'at'; brackets of operators inside are no brackets. */
static const char *skip_group(const char *at)
{
    int depth = 0;

    while (*at) {
        if (begins_with(at, "operator") && !is_name_char(at[-1])) {
            at += strlen("operator");
            at += begins_with(at, "()") ? 2 : strspn(at, "<>=-!+*/%&|^~,");
            continue;
        }
        if (begins_with(at, "->")) {
            at += 2;
            continue;
        }
        depth += *at == '<' || *at == '(' || *at == '[';
        depth -= *at == '>' || *at == ')' || *at == ']';
        at++;
        if (depth == 0)
            return at;
    }
    return at;
}

static void put(struct cutter *cutter, const char *text, size_t length)
{
    memcpy(cutter->out, text, length);
    cutter->out += length;
}

/* "operator" and what it is the operator of. */
static void cut_operator(struct cutter *cutter)
{
    const size_t word = strlen("operator");
    size_t length;

    put(cutter, cutter->at, word);
    cutter->at += word;
    if (begins_with(cutter->at, "()") || begins_with(cutter->at, "[]") ||
        begins_with(cutter->at, "->"))
        length = begins_with(cutter->at, "->*") ? 3 : 2;
    else
        length = strspn(cutter->at, "<>=!+-*/%&|^~,");
    put(cutter, cutter->at, length);
    cutter->at += length;
    /* "operator bool", "operator new": the blank belongs to the name; "operator< <int>" not. */
    if (length == 0 && *cutter->at == ' ') {
        *cutter->out++ = KEPT_BLANK;
        cutter->at++;
    }
}

static void cut_step(struct cutter *cutter, const char *start, int *braces)
{
    static const char anonymous[] = "(anonymous namespace)";
    const char c = *cutter->at;

    if (c == 'o' && begins_with(cutter->at, "operator") &&
        !is_name_char(cutter->at[strlen("operator")]) &&
        (cutter->at == start || !is_name_char(cutter->at[-1]))) {
        cut_operator(cutter);
    } else if (begins_with(cutter->at, anonymous)) {
        put(cutter, "(anonymous)", strlen("(anonymous)"));
        cutter->at += strlen(anonymous);
    } else if (c == '<' || c == '(' || c == '[') {
        cutter->at = skip_group(cutter->at);
    } else {
        *braces += (c == '{') - (c == '}');
        *cutter->out++ = (char)(c == ' ' && *braces > 0 ? KEPT_BLANK : c);
        cutter->at++;
    }
}

/* "foo const &" → "foo". */
static void cut_end(char *text)
{
    static const char *const words[] = {" const", " volatile", " &", " &&", " "};
    bool is_cut = true;

    while (is_cut) {
        is_cut = false;
        for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++) {
            const size_t length = strlen(text), word = strlen(words[i]);
            if (length <= word || strcmp(text + length - word, words[i]) != 0)
                continue;
            text[length - word] = '\0';
            is_cut = true;
        }
    }
}

/*
 * Names with constraints, as C++20 has them, are beyond libstdc++ 12, and TT-Metal is
 * full of them. Up to the first template argument a mangled name is plain: lengths
 * and identifiers.
 */
struct speller {
    const char *at;
    char *out;
    const char *last; /* identifier, as constructors repeat it */
    size_t last_length;
    char *start;
};

static void spell(struct speller *speller, const char *prefix, const char *text, size_t length)
{
    const size_t prefix_length = strlen(prefix);

    if (speller->out != speller->start) {
        memcpy(speller->out, "::", 2);
        speller->out += 2;
    }
    memcpy(speller->out, prefix, prefix_length);
    memcpy(speller->out + prefix_length, text, length);
    speller->out += prefix_length + length;
}

/* A length and so many characters; returns false where that is not what stands there. */
static bool take_identifier(struct speller *speller, const char **ret, size_t *ret_length)
{
    size_t length = 0, digits = 0;

    while (digits < 5 && isdigit((unsigned char)speller->at[digits]))
        length = length * 10 + (size_t)(speller->at[digits++] - '0');
    if (digits == 0 || length == 0 || strnlen(speller->at + digits, length) < length)
        return false;
    *ret = speller->at + digits;
    *ret_length = length;
    speller->at += digits + length;
    return true;
}

/* One part of a name; returns false where the plain part ends. */
static bool spell_part(struct speller *speller)
{
    static const char anonymous[] = "_GLOBAL__N_1";
    const char *text;
    size_t length;

    speller->at += *speller->at == 'L'; /* static */
    if (speller->at[0] == 'B') {        /* a tag of the ABI: no part of the name */
        speller->at++;
        return take_identifier(speller, &text, &length);
    }
    if (begins_with(speller->at, "St")) {
        spell(speller, "", "std", 3);
        speller->at += 2;
        return true;
    }
    if ((speller->at[0] == 'C' || speller->at[0] == 'D') && speller->last &&
        isdigit((unsigned char)speller->at[1])) {
        spell(speller, speller->at[0] == 'D' ? "~" : "", speller->last, speller->last_length);
        speller->at += 2;
        speller->last = NULL; /* once for each name, or the result could be of any length */
        return true;
    }
    if (!take_identifier(speller, &text, &length))
        return false;
    speller->last = text;
    speller->last_length = length;
    if (length == strlen(anonymous) && begins_with(text, anonymous))
        spell(speller, "", "(anonymous)", strlen("(anonymous)"));
    else
        spell(speller, "", text, length);
    return true;
}

static char *shorten_mangled(const char *mangled)
{
    /* Two characters become five at most ("::std"), and each name may come twice. */
    char *text = malloc(strlen(mangled) * 4 + sizeof("…"));
    struct speller speller = {.at = mangled + 2, .out = text, .start = text};

    if (!text)
        return NULL;
    speller.at += strspn(speller.at, "Z"); /* something within a function */
    const bool is_local = speller.at > mangled + 2, is_nested = *speller.at == 'N';
    if (is_nested)
        speller.at += 1 + strspn(speller.at + 1, "rVKRO");
    while (spell_part(&speller) && is_nested)
        ;
    if (speller.out == text) {
        free(text);
        return strdup(mangled);
    }
    const bool is_whole = !is_local && (is_nested ? *speller.at == 'E' : *speller.at != 'I');
    (void)strcpy(speller.out, is_whole ? "" : "…"); /* NOLINT: there is room, see above */
    return text;
}

char *ttm_demangle_shorten(const char *full)
{
    if (begins_with(full, "_Z"))
        return shorten_mangled(full);
    char *text = malloc(strlen(full) + 1); /* nothing gets longer */
    struct cutter cutter = {.at = full, .out = text};
    int braces = 0;

    if (!text)
        return NULL;
    while (*cutter.at)
        cut_step(&cutter, full, &braces);
    *cutter.out = '\0';
    cut_end(text);
    const char *blank = strrchr(text, ' ');
    if (blank)
        memmove(text, blank + 1, strlen(blank + 1) + 1);
    for (char *c = text; *c; c++) {
        if (*c == KEPT_BLANK)
            *c = ' ';
    }
    /* A name of brackets alone is better shown whole. */
    if (text[0] == '\0') {
        free(text);
        return strdup(full);
    }
    return text;
}
