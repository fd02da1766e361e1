/* ---- banks: who sits where ---- */

const strips = [];
const cool =
    ["#4c8bf5", "#2bb3a3", "#9a7be0", "#d69a2d", "#5aa469", "#c06fb0", "#6d8fa8", "#a3a13c"];
const warm = ["#d6402f", "#e8795a", "#b0253d", "#f0a07e"];

/* [{start, end, held, count, origin, is_mixed, is_free}, ...] without holes */
function read_runs(bank) {
    const runs = [];
    let at = bank.start;
    for (let i = 0; i < bank.runs.length; i += 6) {
        const [gap, length, held, count, origin, mixed] = bank.runs.slice(i, i + 6);
        if (gap > 0)
            runs.push({start: at, end: at + gap, is_free: true});
        runs.push(
            {start: at + gap, end: at + gap + length, held, count, origin, is_mixed: mixed === 1});
        at += gap + length;
    }
    return runs;
}

/* The largest origins of a bank have colours of their own; suspects come first and are warm. */
function bank_colours(runs) {
    const held = new Map(),
          is_bad = (origin) => origin >= 0 && process().origins[origin].suspect === true;
    for (const run of runs)
        if (!run.is_free)
            held.set(run.origin, (held.get(run.origin) || 0) + run.held);
    const order = [...held].sort((a, b) => is_bad(b[0]) - is_bad(a[0]) || b[1] - a[1]),
          colours = new Map();
    let cools = 0, warms = 0;
    for (const [origin] of order) {
        const is_warm = is_bad(origin);
        if (origin < 0)
            continue;
        if (is_warm && warms < warm.length)
            colours.set(origin, warm[warms++]);
        else if (!is_warm && cools < cool.length)
            colours.set(origin, cool[cools++]);
    }
    return {order, colours};
}

function strip_x(strip, address, width) {
    return width * (address - strip.bank.start) / (strip.bank.end - strip.bank.start);
}

function draw_strip(strip) {
    const {context, width, height} = paint(strip.canvas);
    if (width === 0)
        return;
    context.fillStyle = colour("faint");
    context.fillRect(0, 0, width, height);
    context.strokeStyle = colour("line");
    for (let x = -height; x < width; x += 7) {
        context.beginPath();
        context.moveTo(x, height);
        context.lineTo(x + height, 0);
        context.stroke();
    }
    strip.runs.forEach((run, i) => {
        const left = strip_x(strip, run.start, width), right = strip_x(strip, run.end, width);
        if (!run.is_free) {
            context.fillStyle = strip.colours.get(run.origin) || colour("dim");
            context.fillRect(left, 0, Math.max(0.7, right - left - (right - left > 3 ? 0.6 : 0)),
                             height);
        }
        if (i !== strip.at)
            return;
        context.strokeStyle = colour("ink");
        context.lineWidth = 2;
        context.strokeRect(Math.min(left, width - 3) + 1, 1, Math.max(1, right - left - 2),
                           height - 2);
        context.lineWidth = 1;
    });
}

function origin_title(index) {
    if (index < 0)
        return "small origins, not on this page";
    const origin = process().origins[index], words = place_of(origin);
    return words.title + (words.rest ? " " + words.rest : "") +
           (origin.caller ? " ← " + origin.caller.title : "") +
           (origin.name ? " “" + origin.name + "”" : "");
}

function run_words(run) {
    const range = address_text(run.start) + " … " + address_text(run.end) + ", " +
                  exact_text(run.end - run.start) + " a bank";
    if (run.is_free)
        return ["free", range];
    const lines = [
        origin_title(run.origin) + (run.is_mixed ? " and others" : ""), range,
        plural(run.count, "buffer", "buffers") +
            (run.held < run.end - run.start ? ", " + bytes_text(run.held) + " held" : "")
    ];
    if (run.origin >= 0)
        lines.push(process().origins[run.origin].op + " · " +
                   process().origins[run.origin].class.replace("_", " "));
    return lines;
}

function strip_point(strip, at, x, y) {
    const box = strip.canvas.getBoundingClientRect(), run = strip.runs[at];
    strip.at = at;
    draw_strip(strip);
    show_tip(x === undefined ? box.left + strip_x(strip, (run.start + run.end) / 2, box.width) : x,
             y === undefined ? box.bottom - 10 : y, ...run_words(run));
}

function strip_keys(strip, event) {
    const steps = {ArrowLeft: -1, ArrowRight: 1, Home: -Infinity, End: Infinity};
    if (event.key === "Escape")
        return strip_leave(strip);
    if (!(event.key in steps))
        return undefined;
    event.preventDefault();
    const from = strip.at === undefined ? -1 : strip.at;
    return strip_point(strip,
                       Math.max(0, Math.min(strip.runs.length - 1, from + steps[event.key])));
}

function strip_leave(strip) {
    strip.at = undefined;
    hide_tip();
    draw_strip(strip);
}

function strip_facts(bank) {
    const span = bank.end - bank.start, rest = bank.bytes - span;
    const parts = [bytes_text(bank.held) + " held by " + plural(bank.count, "buffer", "buffers")];
    parts.push(bank.gaps === 0 ? "no gaps between"
                               : bytes_text(span - bank.held) + " free in " +
                                     plural(bank.gaps, "gap", "gaps") + " between, the largest " +
                                     bytes_text(bank.gap) + " at " + address_text(bank.gap_at));
    if (bank.bytes > 0 && rest >= 0)
        parts.push((rest >= bank.gap ? "largest free block " : "") + bytes_text(rest) + " outside");
    return parts.join(" · ");
}

function make_strip(name, bank) {
    const runs = read_runs(bank), {order, colours} = bank_colours(runs), canvas = make("canvas"),
          legend = make("div", "legend");
    const strip = {canvas, bank, runs, colours};
    for (const [origin, held] of order.slice(0, 10)) {
        const swatch = make("i", "swatch");
        swatch.style.background = colours.get(origin) || colour("dim");
        legend.append(make("span", "", swatch, make("span", "mono", origin_title(origin)),
                           make("span", "dim", bytes_text(held))));
    }
    if (order.length > 10)
        legend.append(
            make("span", "dim", "… " + plural(order.length - 10, "more origin", "more origins")));
    if (bank.gaps > 0)
        legend.append(make("span", "", make("i", "swatch free"), make("span", "dim", "free")));
    canvas.tabIndex = 0;
    canvas.setAttribute("role", "img");
    canvas.setAttribute("aria-label",
                        name + ": " + strip_facts(bank) + ". Arrow keys go from one to the next.");
    canvas.addEventListener("pointermove", (event) => {
        const box = canvas.getBoundingClientRect(),
              address =
                  bank.start + (bank.end - bank.start) * (event.clientX - box.left) / box.width;
        strip_point(strip, Math.max(0, runs.findIndex((run) => address < run.end)), event.clientX,
                    event.clientY);
    });
    canvas.addEventListener("pointerleave", () => strip_leave(strip));
    canvas.addEventListener("blur", () => strip_leave(strip));
    canvas.addEventListener("keydown", (event) => strip_keys(strip, event));
    strips.push(strip);
    const size = bank.bytes > 0
                     ? " · " + plural(bank.banks, "bank", "banks") + " of " + bytes_text(bank.bytes)
                     : "";
    return make("div", "strip",
                make("h3", "", name, make("span", "", size + " · " + strip_facts(bank))), canvas,
                make("div", "ends mono", make("span", "", address_text(bank.start)),
                     make("span", "", address_text(bank.end))),
                legend);
}

function make_banks() {
    const kind = chosen_kind(),
          used = kind ? regions.filter((name) => kind.regions[name] && kind.regions[name].bank &&
                                                 has_region(name))
                      : [];
    strips.length = 0;
    $("bank").hidden = used.length === 0;
    $("bank-title").textContent = "Banks at the end" + (kind ? ", " + kind_title(kind) : "");
    fill($("banks"), ...used.map((name) => make_strip(name, kind.regions[name].bank)));
}

function draw_banks() {
    strips.forEach(draw_strip);
}
