/* SPDX-License-Identifier: Apache-2.0 */
/*
 * report_scene - a program of one device that is told as a story, and what the report says of it.
 */
#ifndef TTM_TESTS_UNIT_REPORT_SCENE_H
#define TTM_TESTS_UNIT_REPORT_SCENE_H

#include "recording_testing.h"

#include "analysis/report.h"
#include "recording_story.h"

#define KIB 1024ull

static inline void read_report(const void *bytes, size_t length, const char *mark,
                               struct ttm_report *ret)
{
    const struct ttm_report_options options = {
        .moments = {mark}, .wants_drawings = true, .seed = 9};
    struct ttm_recording *recording;

    assert_int_equal(ttm_recording_open_fd(memory_fd(bytes, length), &recording), 0);
    assert_int_equal(ttm_report_read(recording, &options, ret), 0);
    ttm_recording_close(recording);
}

static inline void end_story(struct memory_file *file, const char *mark, struct ttm_report *ret)
{
    struct bytes bytes = memory_end(file, true);

    read_report(bytes.data, bytes.length, mark, ret);
    bytes_done(&bytes);
}

static inline const struct ttm_report_origin *find(const struct ttm_report_process *process,
                                                   const char *operation, const char *name)
{
    for (uint32_t i = 0; i < process->origin_count; i++) {
        const struct ttm_origin_words *words = &process->origins[i].words;
        if (strcmp(words->operation, operation) == 0 && strcmp(words->name, name) == 0)
            return &process->origins[i];
    }
    fail_msg("no origin %s '%s'", operation, name);
    return NULL;
}

struct scene {
    struct memory_file file;
    struct story story;
    struct ttm_report report;
    const struct ttm_report_process *process;
    uint32_t other; /* a line that allocates something else */
};

static inline void begin_scene(struct scene *scene)
{
    memory_begin(&scene->file, 0);
    scene->story = story_begin(scene->file.encoder, 1, START_NS, 7, "python3 x.py");
    story_devices(&scene->story, 1);
    scene->other = story_line(&scene->story, "x.py:99:step", "ttnn.add");
}

static inline void end_scene(struct scene *scene)
{
    story_exit(&scene->story, 0);
    end_story(&scene->file, NULL, &scene->report);
    assert_int_equal(scene->report.process_count, 1);
    scene->process = &scene->report.processes[0];
}

static inline void run_steps(struct scene *scene, unsigned steps)
{
    for (unsigned i = 0; i < steps; i++) {
        story_flash(&scene->story, scene->other, TTM_REGION_L1, 4 * KIB);
        story_wait(&scene->story, STORY_MS);
    }
}

static inline void expect(const struct scene *scene, const char *operation, enum ttm_class class,
                          bool is_suspect)
{
    const struct ttm_report_origin *origin = find(scene->process, operation, "");

    if (origin->verdict.class != class || origin->verdict.is_suspect != is_suspect)
        fail_msg("%s is %s%s: %s", operation, ttm_class_name(origin->verdict.class),
                 origin->verdict.is_suspect ? ", suspect" : "", origin->verdict.why);
    assert_true(origin->verdict.why[0] != '\0');
    assert_true(origin->verdict.advice[0] != '\0');
}

static inline void expect_why(const struct scene *scene, const char *operation, const char *part)
{
    const struct ttm_report_origin *origin = find(scene->process, operation, "");

    assert_non_null(origin);
    if (!strstr(origin->verdict.why, part))
        fail_msg("%s: %s", operation, origin->verdict.why);
}

#endif /* TTM_TESTS_UNIT_REPORT_SCENE_H */
