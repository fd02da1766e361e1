/* ---- the table of origins ---- */

const class_words = {
    growing: "growing",
    steady: "steady",
    temporary: "temporary",
    program_cache: "program cache",
    circular_buffer: "circular buffer",
    kernel: "kernel",
    system: "system",
    unsure: "unsure",
};

/* title, class, what to sort by: numbers the largest first, words from A on */
const columns = [
    ["where", "c-where", (origin) => place_of(origin).title],
    ["operation", "c-op", (origin) => origin.op],
    ["region", "c-region", (origin) => origin.region],
    ["count", "c-count n", (origin) => number_of(origin, state.of)],
    ["size", "c-size n", (origin) => weight_of(origin, state.of)],
    ["share", "c-share", (origin) => weight_of(origin, state.of)],
    ["over the run", "c-when", (origin) => origin.last],
    ["class", "c-class", (origin) => (origin.suspect ? "" : " ") + origin.class],
];

function chosen_origins() {
    return process().origins.filter((origin) =>
                                        is_chosen(origin) && number_of(origin, state.of) > 0);
}

/* Suspects stand before all while it is the size that orders, and those of one cause together. */
function compare_origins(key) {
    const direction = state.down ? -1 : 1;
    return (a, b) => {
        const x = key(a), y = key(b);
        if (state.sort === "size" && state.down && state.of === "remaining" &&
            !a.suspect !== !b.suspect)
            return a.suspect ? -1 : 1;
        if (state.sort === "size" && state.down && state.of === "remaining" && a.suspect &&
            a.cause !== b.cause)
            return b.block - a.block || b.cause - a.cause;
        const order = typeof x === "number" ? x - y : x.localeCompare(y, "en", {numeric: true});
        return order !== 0 ? direction * order : weight_of(b, state.of) - weight_of(a, state.of);
    };
}

function sort_by(title) {
    const is_words = ["where", "operation", "region", "class"].includes(title);
    state.down = state.sort === title ? !state.down : !is_words;
    state.sort = title;
    make_table();
}

function make_titles() {
    fill($("titles"), ...columns.map(([title, names]) => {
        const is_sorted = state.sort === title,
              button = make("button", "", title + (is_sorted ? state.down ? " ↓" : " ↑" : ""));
        const cell = make("th", names, button);
        button.type = "button";
        cell.scope = "col";
        if (is_sorted)
            cell.setAttribute("aria-sort", state.down ? "descending" : "ascending");
        button.addEventListener("click", () => {
            sort_by(title);
            const again =
                [...$("titles").children].find((other) => other.getAttribute("aria-sort"));
            if (again)
                again.querySelector("button").focus();
        });
        return cell;
    }));
}

function facts_of(origin) {
    const list = make("dl", "facts"), end = process().heard, put = (title, value) => {
        if (value !== "")
            list.append(make("dt", "", title), make("dd", "", value));
    };
    put("operation", origin.op);
    put("allocated", plural(origin.allocs, "time", "times") + ", " + bytes_text(origin.born));
    put("freed", plural(origin.frees, "time", "times"));
    put("remaining", count_text(origin.remaining[0]) +
                         (origin.remaining[0] ? ", " + bytes_text(origin.remaining[2]) : ""));
    if (origin.remaining[0] > 0) {
        put("requested", exact_text(origin.remaining[1]));
        put("footprint", exact_text(origin.remaining[2]));
    }
    put("at the peak", count_text(origin.peak[0]) + ", " + bytes_text(origin.peak[2]));
    if (origin.late[0] > 0)
        put("freed only after all births",
            count_text(origin.late[0]) + ", " + bytes_text(origin.late[2]));
    if (origin.remaining[0] > 0) {
        put("oldest", time_text(Math.max(0, end - origin.first)));
        put("newest", time_text(Math.max(0, end - origin.last)));
    }
    if (origin.life !== undefined)
        put("mean lifetime of freed ones", time_text(origin.life));
    put(origin.devices.length === 1 ? "device" : "devices", ids_text(origin.devices));
    put("name", origin.name);
    put("context", origin.context);
    put("thread", origin.thread);
    return list;
}

function sizes_of(origin) {
    if (origin.sizes.length === 0)
        return null;
    const list = make("div", "sizes"), most = origin.sizes[1];
    for (let i = 0; i < origin.sizes.length && i < 16; i += 2)
        list.append(make("span", "", count_text(origin.sizes[i + 1]) + " ×"),
                    make("span", "", bytes_text(origin.sizes[i])),
                    meter(origin.sizes[i + 1], most));
    const more = origin.size_count - Math.min(8, origin.sizes.length / 2);
    return make("div", "", make("h4", "", "sizes, as requested"), list,
                more > 0 ? make("div", "dim", "… " + plural(more, "more size", "more sizes"))
                         : null);
}

function births_of(origin) {
    return make(
        "div", "",
        make("h4", "",
             origin.remaining[0] > 0 ? "when what remains was allocated" : "when it was allocated"),
        spark(origin.bars, false),
        make("div", "ends", make("span", "", time_text(0).replace("0 ns", "0")),
             make("span", "", time_text(process().heard))));
}

function frame_item(number) {
    const words = frame_words(number),
          item = make("li", "", make("code", "", make("b", "", words.title)), " ",
                      make("span", "dim", words.rest),
                      words.source ? make("span", "source", words.source) : null);
    if (words.file)
        item.title = words.file;
    return item;
}

function stack_of(origin) {
    const list = make("ol", "stack"); /* the operation stands among the numbers */
    list.append(...lines_of(origin).map(frame_item));
    return make("div", "", make("h4", "", "call stack, innermost first"), list);
}

function native_of(origin) {
    if (!origin.native)
        return null;
    const list = make("ol");
    list.append(...origin.native.map((number) => make("li", "", data.frames[number][0])));
    return make("details", "",
                make("summary", "", plural(origin.native.length, "native frame", "native frames")),
                list);
}

/* "Held by list LEAKED in module decode", where the program was asked. */
function holders_of(origin) {
    if (!origin.holders)
        return null;
    const is_done = origin.holders_search === "done";
    if (origin.holders.length > 0)
        return make("p", "holders",
                    "Held by " + origin.holders.join(", ") +
                        (is_done ? "" : " (search for holders not finished)"));
    return make("p", "holders",
                is_done ? "Held by no Python object that could be seen"
                        : "Search for holders not finished");
}

function make_detail(origin) {
    const cell =
        make("td", "",
             make("div", "detail-grid",
                  make("div", "", make("p", "why", origin.why), holders_of(origin),
                       make("p", "advice", origin.advice), stack_of(origin), native_of(origin)),
                  make("div", "", births_of(origin), sizes_of(origin), make("h4", "", "in numbers"),
                       facts_of(origin))));
    cell.colSpan = columns.length;
    return make("tr", "detail" + (origin.suspect ? " suspect" : ""), cell);
}

function toggle(origin, row, button) {
    const is_open = !state.open.has(origin);
    if (is_open)
        state.open.add(origin);
    else
        state.open.delete(origin);
    button.setAttribute("aria-expanded", String(is_open));
    row.classList.toggle("open", is_open);
    if (is_open)
        row.after(make_detail(origin));
    else
        row.nextSibling.remove();
}

function make_row(origin, all) {
    const words = place_of(origin), weight = weight_of(origin, state.of),
          is_open = state.open.has(origin);
    const caller = origin.caller ? " ← " + origin.caller.title + " " + origin.caller.rest : "";
    const named = origin.name ? " “" + origin.name + "”" : "";
    const button = make("button", "place", make("b", "", words.title), " ",
                        make("span", "", words.rest + caller + named));
    const badge = make("span", "badge " + origin.class, class_words[origin.class] || origin.class);
    button.type = "button";
    button.setAttribute("aria-expanded", String(is_open));
    const size = make("td", "c-size n", bytes_text(weight));
    size.title = exact_text(weight);
    const devices = device_kinds().length < 2     ? ""
                    : origin.devices.length === 1 ? "device " + origin.devices[0]
                                                  : origin.devices.length + " devices";
    const under =
        [words.title === origin.op ? "" : origin.op, origin.region, devices].filter(Boolean).join(
            " · ");
    const when = make("td", "c-when", spark(origin.bars, true));
    when.title = "first " + time_text(origin.first) + ", last " + time_text(origin.last);
    const row = make(
        "tr", "row" + (origin.suspect ? " suspect" : "") + (is_open ? " open" : ""),
        make("td", "c-where", button, words.source ? make("span", "source", words.source) : null,
             make("span", "under", under)),
        make("td", "c-op", origin.op),
        make("td", "c-region", origin.region, devices ? make("small", "dim", devices) : null),
        make("td", "c-count n", count_text(number_of(origin, state.of))), size,
        make("td", "c-share",
             make("div", "share", meter(weight, all), make("span", "", share_text(weight, all)))),
        when, make("td", "c-class", badge));
    row.addEventListener("click", (event) => {
        if (!String(getSelection()))
            toggle(origin, row, button);
        event.preventDefault();
    });
    return row;
}

function sum_of(origins) {
    return origins.reduce((sum, origin) => sum + weight_of(origin, state.of), 0);
}

/* How much of it is shown, and what the process has besides. */
function say_sum(found, all) {
    const more = process().more, rest = state.of === "allocated" ? more.allocs : more[state.of][0];
    const count = found.reduce((sum, origin) => sum + number_of(origin, state.of), 0);
    const left = more.count > 0 && rest > 0
                     ? " · " + plural(more.count, "smaller origin is", "smaller origins are") +
                           " not on this page"
                     : "";
    $("origins-sum").textContent =
        found.length === 0
            ? (state.query                ? "Nothing matches “" + state.query + "”."
               : state.of === "remaining" ? "Nothing remains."
                                          : "Nothing was there.")
            : plural(found.length, "origin", "origins") + ", " +
                  plural(count, "allocation", "allocations") + ", " + bytes_text(sum_of(found)) +
                  (state.query ? " of " + bytes_text(all) : "") + " " + of_words[state.of] + left;
}

function make_table() {
    const origins = chosen_origins(), all = sum_of(origins);
    const key = columns.find(([title]) => title === state.sort)[2];
    const found = origins.filter(matches).sort(compare_origins(key)), body = $("rows");
    make_titles();
    say_sum(found, all);
    $("table").hidden = found.length === 0;
    fill(body);
    for (const origin of found.slice(0, state.shown)) {
        body.append(make_row(origin, all));
        if (state.open.has(origin))
            body.append(make_detail(origin));
    }
    $("more").hidden = found.length <= state.shown;
    $("more").textContent = "show " + count_text(Math.min(200, found.length - state.shown)) +
                            " more of " + count_text(found.length);
}
