/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The page of a report: nothing that a program says can break out of its place, and
 * however much there is, the page stays small. tests/integration/test_page.py reads the
 * data and drives the page in a browser.
 */
#include "recording_testing.h"

#include "analysis/report.h"
#include "cli/page.h"
#include "cli/page_data.h"
#include "recording_story.h"

#define KIB 1024ull
#define DATA_BEGIN "<script type=\"application/json\" id=\"data\">"

struct scene {
    struct memory_file file;
    struct story story;
    struct ttm_report report;
    struct ttm_text page;
};

static void begin(struct scene *scene, const char *command)
{
    memory_begin(&scene->file, 0);
    scene->story = story_begin(scene->file.encoder, 1, START_NS, 7, command);
    story_devices(&scene->story, 1);
}

static void end_report(struct scene *scene)
{
    const struct ttm_report_options options = {.wants_drawings = true, .seed = 9};
    struct ttm_recording *recording;
    struct bytes bytes = memory_end(&scene->file, true);

    assert_int_equal(ttm_recording_open_fd(memory_fd(bytes.data, bytes.length), &recording), 0);
    assert_int_equal(ttm_report_read(recording, &options, &scene->report), 0);
    ttm_recording_close(recording);
    bytes_done(&bytes);
    ttm_text_init(&scene->page);
}

static void end(struct scene *scene)
{
    end_report(scene);
    assert_int_equal(ttm_page_write(&scene->report, "folder/x.ttmem", NULL, &scene->page), 0);
}

static void done(struct scene *scene)
{
    ttm_text_done(&scene->page);
    ttm_report_done(&scene->report);
}

static unsigned count_of(const char *text, const char *word)
{
    unsigned count = 0;

    while ((text = strstr(text, word)) != NULL) {
        count++;
        text += strlen(word);
    }
    return count;
}

/* The data alone. To be freed. */
static char *data_of(const struct scene *scene)
{
    const char *start = strstr(ttm_text_string(&scene->page), DATA_BEGIN);

    assert_non_null(start);
    start += strlen(DATA_BEGIN);
    char *data = strndup(start, (size_t)(strstr(start, "</script>") - start));
    assert_non_null(data);
    return data;
}

static void hostile_text_stays_text(void **state)
{
    static const char evil[] = "</script><script>alert(1)</script><!--<img src=x onerror=alert(2)>"
                               "\"'`\\u003c\n\r\t\x01\x7f\xff\xc3";
    struct scene scene;
    (void)state;

    begin(&scene, evil);
    const struct story_words words = {.python = "</script>.py:3:<b>evil</b>",
                                      .operation = evil,
                                      .name = evil,
                                      .context = evil,
                                      .thread = evil};
    story_birth(&scene.story, story_origin(&scene.story, &words), TTM_REGION_DRAM, KIB);
    story_mark(&scene.story, evil);
    end(&scene);
    const char *page = ttm_text_string(&scene.page);
    assert_int_equal(count_of(page, "<script"), 2);
    assert_int_equal(count_of(page, "</script"), 2);
    assert_int_equal(count_of(page, "<!--"), 0);
    char *data = data_of(&scene);
    assert_null(strchr(data, '<'));
    for (const char *c = data; *c; c++)
        assert_true((unsigned char)*c >= 0x20 && *c != 0x7f);
    assert_true(count_of(data, "\\u003c/script>\\u003cscript>alert(1)") >= 4);
    free(data);
    done(&scene);
}

static void nothing_is_loaded_from_anywhere(void **state)
{
    struct scene scene;
    (void)state;

    begin(&scene, "x");
    end(&scene);
    const char *page = ttm_text_string(&scene.page);
    assert_non_null(strstr(page, "Content-Security-Policy\" content=\"default-src 'none'; "
                                 "script-src 'sha256-"));
    assert_int_equal(count_of(page, "unsafe-"), 0);
    assert_int_equal(count_of(page, " src="), 0);
    assert_int_equal(count_of(page, "href"), 0);
    assert_int_equal(count_of(page, "@import"), 0);
    assert_int_equal(count_of(page, "url("), 0);
    /* A name of a kind of elements, not an address that is asked for. */
    assert_int_equal(count_of(page, "://"), count_of(page, "http://www.w3.org/2000/svg"));
    done(&scene);
}

static void long_texts_are_cut_where_a_character_ends(void **state)
{
    struct scene scene;
    char name[4000];
    (void)state;

    memset(name, 0, sizeof(name));
    for (unsigned i = 0; i < 1000; i++)
        memcpy(name + 3 * i, "€", 3);
    begin(&scene, "x");
    const struct story_words words = {.operation = "op", .name = name};
    story_birth(&scene.story, story_origin(&scene.story, &words), TTM_REGION_DRAM, KIB);
    end(&scene);
    char *data = data_of(&scene);
    const char *cut = strstr(data, "€");
    assert_non_null(cut);
    assert_in_range(count_of(data, "€"), 90, TTM_PAGE_TEXT / 3);
    assert_non_null(strstr(data, "€…\""));
    assert_int_equal(count_of(data, "\\ufffd"), 0);
    free(data);
    done(&scene);
}

/* Each allocation has a name of its own, and each is marked. */
static void a_page_is_small_however_much_there_is(void **state)
{
    struct scene scene;
    char text[512];
    (void)state;

    begin(&scene, "x");
    for (unsigned i = 0; i < 20000; i++) {
        (void)snprintf(text, sizeof(text), "%0400u", i);
        const struct story_words words = {.operation = "ttnn.zeros", .name = text};
        const uint32_t origin = story_origin(&scene.story, &words);
        story_birth(&scene.story, origin, i % 2 ? TTM_REGION_DRAM : TTM_REGION_L1, 32 * (i + 1));
        story_mark(&scene.story, text);
        story_wait(&scene.story, 100000);
    }
    end(&scene);
    assert_true(scene.page.length < 5 << 20);
    char *data = data_of(&scene);
    assert_int_equal(count_of(data, "{\"stack\":"), TTM_PAGE_ORIGINS);
    assert_non_null(strstr(data, "\"more\":{\"count\":18500,"));
    assert_non_null(strstr(data, "\"mark_count\":20000"));
    free(data);
    done(&scene);
}

static void an_empty_recording_has_a_page(void **state)
{
    struct scene scene;
    (void)state;

    memory_begin(&scene.file, 0);
    end(&scene);
    char *data = data_of(&scene);
    assert_non_null(strstr(data, "\"processes\":[]"));
    free(data);
    done(&scene);
}

static void a_page_without_memory_is_no_page_and_leaks_nothing(void **state)
{
    struct scene scene;
    bool has_failed = true;
    (void)state;

    begin(&scene, "x");
    const uint32_t origin = story_line(&scene.story, "x.py:5:keep|x.py:9:main", "ttnn.zeros");
    for (unsigned i = 0; i < 4; i++)
        story_birth(&scene.story, origin, TTM_REGION_DRAM, KIB * (i + 1));
    story_mark(&scene.story, "m");
    end_report(&scene);
    for (unsigned grants = 0; has_failed; grants++) {
        struct ttm_text page;
        ttm_text_init(&page);
        faults_begin(grants);
        const int r = ttm_page_write(&scene.report, "x", NULL, &page);
        has_failed = faults_end();
        assert_int_equal(r, has_failed ? -ENOMEM : 0);
        ttm_text_done(&page);
    }
    done(&scene);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(hostile_text_stays_text),
        cmocka_unit_test(nothing_is_loaded_from_anywhere),
        cmocka_unit_test(long_texts_are_cut_where_a_character_ends),
        cmocka_unit_test(a_page_is_small_however_much_there_is),
        cmocka_unit_test(an_empty_recording_has_a_page),
        cmocka_unit_test(a_page_without_memory_is_no_page_and_leaks_nothing),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
