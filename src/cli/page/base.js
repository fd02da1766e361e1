"use strict";
/* SPDX-License-Identifier: Apache-2.0
 *
 * The page draws what tt-mem has put into the element "data". Whatever text comes from there goes
 * into the page as text (textContent) and nothing else. Numbers of elements are bounded: what there
 * are too many of is cut, and said so.
 */
/* Control characters are shown as a mark: those that change the direction of text could make one
 * name look like another. */
const controls = /[\u0000-\u001f\u007f-\u009f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069]/g;
const data =
    JSON.parse(document.getElementById("data").textContent,
               (_, value) => typeof value === "string" ? value.replace(controls, "\ufffd") : value);
const state = {
    process: 0,
    device: -1,
    region: "",
    query: "",
    of: "remaining",
    flame: "remaining",
    sort: "size",
    down: true,
    shown: 60,
    open: new Set(),
    zoom: [],
};
const regions = ["DRAM", "L1", "L1_SMALL", "TRACE", "CB", "KERNEL", "SYSTEM_MEMORY"];
const of_words = {
    remaining: "remaining",
    peak: "at the peak",
    allocated: "allocated"
};

/* ---- numbers as people read them: as base/text.c writes them ---- */

function bytes_text(bytes) {
    const units = ["B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"];
    let unit = 0;
    while (bytes >= 1023.5 && unit + 1 < units.length) {
        bytes /= 1024;
        unit++;
    }
    return bytes.toFixed(unit === 0 || bytes >= 99.95 ? 0
                         : unit >= 3                  ? 2
                                                      : 1) +
           "\u00a0" + units[unit];
}

function count_text(count) {
    return String(count).replace(/\B(?=(\d{3})+$)/g, ",");
}

function exact_text(bytes) {
    return bytes < 1024 ? count_text(bytes) + " B"
                        : bytes_text(bytes) + " (" + count_text(bytes) + " B)";
}

/* A log without times tells the order alone. */
function time_text(ns) {
    if (process().untimed)
        return share_text(ns, process().heard) + " of the log";
    const ms = ns / 1e6, s = Math.floor(ns / 1e9), two = (n) => String(n).padStart(2, "0");
    if (ns < 1e6)
        return ns < 1000 ? Math.round(ns) + " ns" : (ns / 1e3).toFixed(ns < 1e5 ? 1 : 0) + " µs";
    if (ms < 1000)
        return ms.toFixed(ms < 10 ? 1 : 0) + " ms";
    if (s < 60)
        return (ns / 1e9).toFixed(s < 10 ? 2 : 1) + " s";
    if (s < 3600)
        return Math.floor(s / 60) + " min " + two(s % 60) + " s";
    if (s < 86400)
        return Math.floor(s / 3600) + " h " + two(Math.floor(s % 3600 / 60)) + " min";
    return Math.floor(s / 86400) + " d " + two(Math.floor(s % 86400 / 3600)) + " h";
}

function share_text(part, all) {
    if (!(all > 0))
        return "";
    const percent = 100 * part / all;
    return percent === 0   ? "0 %"
           : percent < 0.1 ? "< 0.1 %"
                           : percent.toFixed(percent < 9.95 ? 1 : 0) + " %";
}

function plural(count, one, many) {
    return count_text(count) + " " + (count === 1 ? one : many);
}

function address_text(number) {
    return "0x" + number.toString(16);
}

/* [0, 1, 2, 5] is "0–2, 5" */
function ids_text(ids) {
    const parts = [];
    for (let i = 0; i < ids.length;) {
        let next = i + 1;
        while (next < ids.length && ids[next] === ids[next - 1] + 1)
            next++;
        parts.push(next - i > 1 ? ids[i] + "–" + ids[next - 1] : String(ids[i]));
        i = next;
    }
    return parts.join(", ");
}

/* ---- elements ---- */

const $ = (id) => document.getElementById(id);

/* make("p", "dim", "text", child, ...): strings become text, whatever is in them. */
function make(tag, names, ...children) {
    const element = document.createElement(tag);
    if (names)
        element.className = names;
    element.append(
        ...children.filter((child) => child !== null && child !== undefined && child !== ""));
    return element;
}

function fill(element, ...children) {
    element.replaceChildren(...children.filter((child) => child !== null && child !== ""));
}

function meter(part, all, is_full) {
    const inner = make("i", is_full ? "full" : "");
    inner.style.width = (all > 0 ? Math.max(0, Math.min(100, 100 * part / all)) : 0) + "%";
    return make("div", "meter", inner);
}

/* Bars side by side; 'sums' draws how they add up: growth is a ramp, start-up a block. */
function spark(bars, sums) {
    const ns = "http://www.w3.org/2000/svg", svg = document.createElementNS(ns, "svg");
    let sum = 0;
    const values = bars.map((bar) => (sum += bar, sums ? sum : bar)), most = Math.max(1, ...values);
    svg.setAttribute("class", "spark");
    svg.setAttribute("viewBox", "0 0 " + bars.length * 4 + " 22");
    svg.setAttribute("preserveAspectRatio", "none");
    svg.setAttribute("aria-hidden", "true");
    values.forEach((value, i) => {
        if (value === 0)
            return;
        const rect = document.createElementNS(ns, "rect"), height = Math.max(1, 22 * value / most);
        for (const [key, number] of [["x", i * 4], ["y", 22 - height], ["width", 3.4],
                                     ["height", height]])
            rect.setAttribute(key, number.toFixed(1));
        svg.append(rect);
    });
    return svg;
}

function choice(element, values, get, set) {
    fill(element, ...values.map((value) => {
        const button = make("button", "", of_words[value]);
        button.type = "button";
        button.setAttribute("aria-pressed", String(get() === value));
        button.dataset.value = value;
        button.addEventListener("click", () => {
            set(value);
            for (const other of element.children)
                other.setAttribute("aria-pressed", String(other === button));
        });
        return button;
    }));
}

/* ---- the tip that follows pointer or keys ---- */

function show_tip(x, y, ...lines) {
    const tip = $("tip");
    fill(tip, ...lines.map((line, i) => make("div", "", i === 0 ? make("b", "", line) : line)));
    tip.hidden = false;
    const box = tip.getBoundingClientRect();
    tip.style.left = Math.max(6, Math.min(x + 14, innerWidth - box.width - 8)) + "px";
    tip.style.top =
        (y + 18 + box.height > innerHeight ? Math.max(6, y - box.height - 10) : y + 18) + "px";
}

function hide_tip() {
    $("tip").hidden = true;
}

/* ---- what is chosen ---- */

const process = () => data.processes[state.process];

/* Devices that are alike are one: {ids, regions, board, arch}. */
function device_kinds() {
    const kinds = new Map();
    for (const device of process().devices) {
        const first = device.like === undefined ? device.id : device.like;
        if (!kinds.has(first))
            kinds.set(first, Object.assign({ids: []}, device));
        kinds.get(first).ids.push(device.id);
    }
    return [...kinds.values()];
}

/* The one that was chosen, else the one with the most suspect memory, else the fullest. */
function chosen_kind() {
    const kinds = device_kinds(),
          bad = (kind) => process().origins.reduce(
              (sum, origin) => sum + (origin.suspect && origin.devices.includes(kind.ids[0])
                                          ? origin.remaining[2]
                                          : 0),
              0);
    const peaks = (kind) =>
        regions.reduce((sum, name) => sum + (kind.regions[name] ? kind.regions[name].peak : 0), 0);
    return kinds.find((kind) => kind.ids[0] === state.device) ||
           kinds.map((kind) => [kind, bad(kind), peaks(kind)])
               .sort((a, b) => b[1] - a[1] || b[2] - a[2])
               .map(([kind]) => kind)[0];
}

/* "3", "0–7 each" */
function kind_title(kind) {
    return (kind.ids.length > 1 ? "devices " : "device ") + ids_text(kind.ids) +
           (kind.ids.length > 1 ? " each" : "");
}

function has_region(region) {
    return state.region === "" || state.region === region;
}

function colour(name) {
    return getComputedStyle(document.documentElement).getPropertyValue("--" + name).trim();
}

/* A canvas of the size that it has on the screen, ready to be drawn on. */
function paint(canvas) {
    const ratio = Math.min(3, devicePixelRatio || 1), width = canvas.clientWidth,
          height = canvas.clientHeight;
    canvas.width = Math.round(width * ratio);
    canvas.height = Math.round(height * ratio);
    const context = canvas.getContext("2d");
    context.scale(ratio, ratio);
    context.clearRect(0, 0, width, height);
    return {context, width, height};
}

/* ---- origins and their frames ---- */

function base_name(path) {
    return path.slice(path.lastIndexOf("/") + 1);
}

/* {title: "decode.py:28", rest: "cache_kv", source, name} */
function frame_words(number) {
    const [name, file, line, source] = data.frames[number];
    if (file === undefined) {
        const [, title, rest] =
            /^(\S+:\d+) (.*)$/.exec(name) || [name, name, ""]; /* a native one may have a line */
        return {title, rest, source: "", file: "", name};
    }
    const end = name.lastIndexOf(" (");
    return {
        title: base_name(file) + ":" + line,
        rest: end > 0 ? name.slice(0, end) : name,
        source: source || "",
        file: file + ":" + line,
        name,
    };
}

/* The user's own line, else what is known instead. */
function place_of(origin) {
    const stack = origin.stack,
          has_op = origin.op !== undefined && origin.op !== "" && stack.length > 1;
    return frame_words(origin.lines === false && has_op
                           ? stack[stack.length - 1]
                           : stack[stack.length - 1 - (has_op ? 1 : 0)]);
}

/* Innermost first, without the operation. */
function lines_of(origin) {
    return origin.stack.slice(0, origin.op && origin.stack.length > 1 ? -1 : undefined).reverse();
}

/* Origins that one object holds stand together, at the place of one as large as all of them. */
function find_blocks(p) {
    for (const origin of p.origins)
        Object.assign(origin, {cause: -1, block: origin.remaining[2]});
    p.causes.forEach((cause, i) => {
        for (const place of cause.origins)
            Object.assign(p.origins[place], {cause: i, block: cause.remaining[2]});
    });
}

/* Where several origins share their innermost line, the first caller that tells each one apart. */
function find_callers(origins) {
    const groups = new Map();
    for (const origin of origins) {
        const first = lines_of(origin)[0];
        if (!groups.has(first))
            groups.set(first, []);
        groups.get(first).push(origin);
    }
    for (const group of groups.values()) {
        const stacks = group.slice(0, 100).map(lines_of);
        stacks.forEach((lines, i) => {
            let depth = 0;
            stacks.forEach((other, k) => {
                let at = 0;
                while (at < lines.length && lines[at] === other[at])
                    at++;
                if (k !== i && at < lines.length)
                    depth = Math.max(depth, at);
            });
            if (depth > 0 && group[i].lines)
                group[i].caller = frame_words(lines[depth]);
        });
    }
}

function weight_of(origin, of) {
    return of === "allocated" ? origin.born : origin[of][2];
}

function number_of(origin, of) {
    return of === "allocated" ? origin.allocs : origin[of][0];
}

/* What people may search for, once. */
function text_of(origin) {
    if (!origin.text)
        origin.text = [...origin.stack, ...(origin.native || [])]
                          .map((n) => data.frames[n].slice(0, 2).join(" "))
                          .concat([
                              origin.op, origin.name, origin.context, origin.thread, origin.class,
                              origin.region
                          ])
                          .join("\n")
                          .toLowerCase();
    return origin.text;
}

function matches(origin) {
    return state.query === "" || text_of(origin).includes(state.query);
}

function is_chosen(origin) {
    return has_region(origin.region) && (state.device < 0 || origin.devices.includes(state.device));
}
