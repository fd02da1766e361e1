/* ---- the head, the controls, and everything together ---- */

function short_command(command) {
    const end = command.indexOf(" "), first = end < 0 ? command : command.slice(0, end);
    return first.slice(first.lastIndexOf("/") + 1) + (end < 0 ? "" : command.slice(end));
}

function caution(text) {
    return make("p", "caution", text);
}

/* A log tells neither a start nor how it ended. */
function run_facts(p) {
    if (p.logged)
        return ["from a text log" + (p.untimed ? " without times" : ", " + time_text(p.ran))];
    return [
        p.ended ? "ended after " : "", make("b", "", time_text(p.ran)),
        p.ended ? ", " : " recorded, ", make("b", p.well ? "" : "bad", p.end)
    ];
}

function make_facts() {
    const p = process();
    const lost = p.lost === 0 ? make("b", "", p.missed ? "not all was heard" : "nothing lost")
                              : make("b", "bad", plural(p.lost, "event", "events") + " lost");
    fill($("facts"), ...run_facts(p), " · ", plural(p.devices.length, "device", "devices"), " · ",
         plural(p.allocs, "allocation", "allocations") + ", " + plural(p.frees, "free", "frees") +
             ", ",
         lost, p.mark_count > 0 ? " · " + plural(p.mark_count, "mark", "marks") : "",
         p.logged ? "" : " · started " + new Date(p.start_ms).toLocaleString(),
         p.logged && p.pid === 0 ? "" : " · pid " + p.pid);
}

/* Of the origin that was replaced most, and mostly: why that is no leak. */
function artefact_text(p) {
    const odd =
        p.origins
            .filter((origin) => origin.class === "unsure" && 2 * origin.replaced >= origin.allocs)
            .sort((a, b) => b.replaced - a.replaced)[0];
    return odd ? " " + place_of(odd).title + ": " + odd.why + "." : "";
}

function make_cautions() {
    const p = process(), cautions = [];
    if (p.why)
        cautions.push((p.complete ? "What remains is exact, the history is not: " : "Not exact: ") +
                      p.why + ".");
    if (data.flaws)
        cautions.push(data.flaws[0].toUpperCase() + data.flaws.slice(1) + ".");
    for (const finding of p.findings)
        cautions.push(count_text(finding.count) + " × " + finding.text + "." +
                      (finding.kind === "replaced" ? artefact_text(p) : ""));
    if (p.marks.length / 2 < p.mark_count)
        cautions.push("Of " + count_text(p.mark_count) + " marks, " +
                      count_text(p.marks.length / 2) + " are drawn.");
    if (data.processes.length < data.process_count)
        cautions.push("Of " + count_text(data.process_count) + " processes, the first " +
                      data.processes.length + " are on this page.");
    fill($("cautions"), ...cautions.map(caution));
}

/* Shows the row of an origin, with all that is known of it. */
function worst_button(origin) {
    const words = place_of(origin), caller = origin.caller ? " ← " + origin.caller.rest : "",
          button = make("button", "", words.title + " " + words.rest + caller);
    button.type = "button";
    button.addEventListener("click", () => {
        Object.assign(state, {query: "", region: "", of: "remaining", sort: "size", down: true});
        state.open.add(origin);
        $("search").value = "";
        make_controls();
        make_views();
        $("origins").scrollIntoView({block: "start"});
        $("rows").querySelector("[aria-expanded=true]").focus({preventScroll: true});
    });
    return button;
}

/* What one object holds of several lines: one place to look at for all of them. */
function make_causes() {
    const p = process();
    fill($("causes"), ...p.causes.map((cause) => {
        const origins = cause.origins.map((place) => p.origins[place]);
        const amount =
            plural(cause.remaining[0], "buffer", "buffers") + ", " + bytes_text(cause.remaining[2]);
        return make("p", "",
                    make("b", "",
                         "One cause for " + plural(origins.length, "origin", "origins") + ", " +
                             amount + ": " + cause.text),
                    make("span", "advice", cause.advice), ...origins.slice(0, 12).map(worst_button),
                    origins.length > 12 ? "and " + count_text(origins.length - 12) + " more" : "");
    }));
}

/* The one sentence that people came for. */
function make_verdict() {
    const p = process(), suspects = p.origins.filter((origin) => origin.suspect),
          verdict = $("verdict");
    /* What the program cache keeps is nobody's to free, and no buffer in a sentence. */
    const is_cached =
        (origin) => ["program_cache", "circular_buffer", "kernel"].includes(origin.class);
    const count_of = (origins) => origins.reduce((sum, origin) => sum + origin.remaining[0], 0);
    const cached = count_of(p.origins.filter(is_cached)),
          left = count_of(p.origins.filter((origin) => !is_cached(origin))) + p.more.remaining[0];
    /* Without what other sessions of a device left that does not grow. */
    const judged = (origin) => origin.judged || origin.remaining;
    const count = suspects.reduce((sum, origin) => sum + judged(origin)[0], 0);
    const unsure = p.origins.reduce(
        (sum, origin) => sum + (origin.class === "unsure" ? origin.remaining[0] : 0), 0);
    const caught = p.causes.reduce((sum, cause) => sum + cause.remaining[0], 0);
    const bytes = suspects.reduce((sum, origin) => sum + judged(origin)[2], 0);
    const kept =
        p.origins.filter((origin) => origin.class === "growing" && origin.remaining[0] === 0);
    const over = suspects.filter((origin) => origin.over).length,
          growth = over === 0                 ? "keep"
                   : over === suspects.length ? "kept"
                                              : "keep or kept";
    verdict.className = suspects.length > 0 ? "bad" : "good";
    verdict.textContent =
        suspects.length > 0 ? plural(suspects.length, "suspect", "suspects") + ": " +
                                  plural(count, "buffer", "buffers") + " that " + growth +
                                  " growing, " + bytes_text(bytes) +
                                  (p.at_a_time > 0 && p.at_a_time < bytes
                                       ? ", " + bytes_text(p.at_a_time) + " at a time"
                                       : "") +
                                  (suspects[0].devices.length > 1 ? " on each device" : "")
        : caught > 0 ? "No suspects; " + count_text(caught) + " of the " +
                           plural(left, "buffer", "buffers") + " left " +
                           (caught === 1 ? "is" : "are") + " held by an exception or a cycle"
        : unsure > 0 ? "No suspects; " + count_text(unsure) + " of the " +
                           plural(left, "buffer", "buffers") + " left " +
                           (unsure === 1 ? "is" : "are") + " unsure"
        : left > 0 ? "No suspects: the " + plural(left, "buffer", "buffers") + " left " +
                         (left === 1 ? "looks" : "look") + " intended"
        : cached > 0 ? "No suspects: " + plural(cached, "allocation", "allocations") +
                           " kept by the program cache"
        : p.missed ? "Nothing remains" + (p.complete ? "" : ", as far as was heard")
        : p.allocs > 0
            ? "Nothing remains: all that was allocated was freed" +
                  (p.findings.some((finding) => finding.kind === "replaced") ? " or replaced" : "")
            : "Nothing was allocated";
    if (suspects.length > 0)
        verdict.append(" · " + (suspects.length > 1 ? "the worst: " : ""),
                       worst_button(suspects[0]));
    if (kept.length > 0)
        verdict.append("; " + plural(kept.length, "origin", "origins") +
                       " grew all through the run and " + (kept.length === 1 ? "was" : "were") +
                       " freed only after all births");
}

/* Of a clash 'bank_wanted' is the address at which the circular buffers would end. */
function clash_text(failure) {
    if (failure.bank_wanted === 0)
        return "";
    return "Circular buffers would end at " + address_text(failure.bank_wanted) +
           (failure.wanted > 0
                ? " and take " + bytes_text(failure.wanted) + " on all cores together"
                : "") +
           "; free " + bytes_text(failure.free) + " a bank, largest block " +
           bytes_text(failure.largest);
}

const verdict_words = {
    fragmented: "fragmented, not exhausted",
    exhausted: "exhausted"
};

function wanted_of(failure) {
    if (failure.clash)
        return make("p", "", clash_text(failure));
    const line = make("p", "", bytes_text(failure.wanted) + " wanted");
    if (failure.bank_wanted > 0)
        line.append(", " + bytes_text(failure.bank_wanted) + " a bank; free " +
                    bytes_text(failure.free) + ", largest block " + bytes_text(failure.largest));
    if (failure.verdict)
        line.append(" → ", make("b", "", verdict_words[failure.verdict]));
    return line;
}

function make_failure(failure) {
    const rows = make("table");
    const operation = failure.op, place = place_of({stack: failure.stack, op: failure.op});
    for (let i = 0; i < failure.owners.length; i += 3) {
        const origin = process().origins[failure.owners[i]];
        rows.append(
            make("tr", "", make("td", "n", bytes_text(failure.owners[i + 1])),
                 make("td", "mono", origin_title(failure.owners[i])),
                 make("td", "n dim", plural(failure.owners[i + 2], "buffer", "buffers")),
                 make("td", "",
                      origin && origin.suspect ? make("span", "badge growing", "suspect") : "")));
    }
    return make(
        "div", "failure",
        make("p", "",
             make("b", "",
                  failure.clash ? "Circular buffers clash with L1 buffers" : "Out of memory"),
             (failure.clash ? " on" : " in " + failure.region + " of") + " device " +
                 failure.device +
                 (failure.alike > 1
                      ? ", " + count_text(failure.alike) + " times from " +
                            time_text(failure.first) + " to " + time_text(failure.time) + ", at "
                      : " after " + time_text(failure.time) + " at "),
             make("code", "", place.title + " " + place.rest),
             operation ? " (" + operation + ")" : ""),
        wanted_of(failure),
        rows.children.length > 0
            ? make("p", "dim",
                   "who held " + (failure.clash ? "L1 and circular buffers" : failure.region) +
                       " then")
            : null,
        rows);
}

/* One of each kind, the last first: that is the one that ended the program, if one did. */
function make_failures() {
    const p = process(),
          kinds = p.failures.filter((failure) => failure.alike > 0).reverse().slice(0, 20),
          more = p.failures_ever - kinds.reduce((sum, failure) => sum + failure.alike, 0);
    $("failures").hidden = p.failures.length === 0;
    fill($("failure-list"), ...kinds.map(make_failure),
         more > 0 ? make("p", "dim", "… " + count_text(more) + " more failed") : null);
}

/* ---- controls ---- */

function options(select, rows, value) {
    fill(select, ...rows.map(([key, text]) => {
        const option = make("option", "", text);
        option.value = key;
        return option;
    }));
    select.value = value;
}

function make_controls() {
    const p = process(), kinds = device_kinds(),
          used = regions.filter((name) => kinds.some((kind) => kind.regions[name]));
    $("process-label").hidden = data.processes.length < 2;
    options(
        $("process"),
        data.processes.map(
            (other, i) => [String(i), other.pid + " " + short_command(other.command).slice(0, 60)]),
        String(state.process));
    $("device-label").hidden = kinds.length < 2;
    options($("device"),
            [["-1", "all"], ...kinds.map((kind) => [String(kind.ids[0]), ids_text(kind.ids)])],
            String(state.device));
    if (!used.includes(state.region))
        state.region = "";
    options($("region"), [["", "all"], ...used.map((name) => [name, name])], state.region);
    choice($("origins-of"), ["remaining", "peak", "allocated"], () => state.of, (value) => {
        state.of = value;
        make_table();
    });
    choice($("flame-of"), ["remaining", "peak", "allocated"], () => state.flame, (value) => {
        state.flame = value;
        make_flame();
    });
    $("file").textContent = data.file;
    $("command").textContent = short_command(p.command) || "pid " + p.pid;
    $("command").title = p.command;
    document.title = "tt-mem: " + short_command(p.command);
}

function draw_all() {
    draw_timeline();
    draw_banks();
}

function make_views() {
    hide_tip();
    make_timeline();
    make_table();
    make_flame();
    make_banks();
    draw_all();
}

function choose_device(id) {
    state.device = id;
    $("device").value = String(id);
    make_views();
}

function make_process() {
    find_callers(process().origins);
    find_blocks(process());
    state.open.clear();
    state.zoom = [];
    state.device = -1;
    make_controls();
    make_facts();
    make_cautions();
    make_verdict();
    make_causes();
    make_failures();
    make_views();
}

function next_theme() {
    const order = ["auto", "light", "dark"], root = document.documentElement;
    const next = order[(order.indexOf(root.dataset.theme || "auto") + 1) % 3];
    if (next === "auto")
        delete root.dataset.theme;
    else
        root.dataset.theme = next;
    $("theme").textContent = next;
    $("theme").setAttribute("aria-label", "colours: " + (next === "auto" ? "as the system" : next));
    draw_all();
}

function listen() {
    let timer = 0;
    $("theme").addEventListener("click", next_theme);
    $("process").addEventListener("change", () => {
        state.process = Number($("process").value);
        make_process();
    });
    $("device").addEventListener("change", () => choose_device(Number($("device").value)));
    $("region").addEventListener("change", () => {
        state.region = $("region").value;
        state.zoom = [];
        make_views();
    });
    $("search").addEventListener("input", () => {
        clearTimeout(timer);
        timer = setTimeout(() => {
            state.query = $("search").value.trim().toLowerCase();
            state.shown = 60;
            make_table();
            make_flame();
        }, 80);
    });
    $("more").addEventListener("click", () => {
        state.shown += 200;
        make_table();
    });
    addEventListener("resize", () => {
        make_flame();
        draw_all();
    });
    addEventListener("beforeprint", draw_all);
    addEventListener("afterprint", draw_all);
    matchMedia("(prefers-color-scheme: dark)").addEventListener("change", draw_all);
    document.addEventListener("keydown", (event) => {
        if (event.key === "/" && !/^(INPUT|SELECT)$/.test(document.activeElement.tagName)) {
            event.preventDefault();
            $("search").focus();
        }
    });
}

function start() {
    $("foot").textContent =
        "Made by " + data.tool + " from " + data.file + ", " +
        plural(data.records, "record", "records") +
        ". This page needs no network and no other file. The same in a terminal: tt-mem report " +
        data.file;
    if (data.processes.length === 0) {
        $("command").textContent = "Nothing was recorded";
        $("facts").textContent = "No program reported.";
        fill($("cautions"),
             data.flaws ? caution(data.flaws[0].toUpperCase() + data.flaws.slice(1) + ".") : null);
        for (const id of ["tools", "timeline", "origins", "flame", "verdict"])
            $(id).hidden = true;
    } else {
        /* The process with the most suspect memory first, as 'tt-mem report' does. */
        const weight = (p) =>
            p.origins.reduce((sum, origin) => sum + (origin.suspect ? origin.remaining[2] : 0), 0);
        data.processes.forEach((p, i) => {
            const best = data.processes[state.process];
            if (weight(p) > weight(best) || (weight(p) === weight(best) && p.allocs > best.allocs))
                state.process = i;
        });
        listen();
        make_process();
    }
    document.documentElement.dataset.ready = String(Math.round(performance.now()));
}

start();
