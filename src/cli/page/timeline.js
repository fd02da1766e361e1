/* ---- memory over time ---- */

const charts = []; /* {canvas, region, course, name, peak} of the device that is shown */
const chart_left = 4, chart_right = 62, chart_top = 16; /* the scale stands at the right */

/* [{from, to, min, max, last}, ...] of all spans in which something changed; between them it is
 * flat. */
function read_course(course) {
    const spans = [];
    if (!course)
        return spans;
    let at = 0, last = 0;
    for (let i = 0; i < course.v.length; i += 4) {
        const skip = course.v[i];
        if (skip > 0)
            spans.push({
                from: course.at + at * course.span,
                to: course.at + (at + skip) * course.span,
                min: last,
                max: last,
                last
            });
        at += skip;
        last = course.v[i + 3] * course.unit;
        spans.push({
            from: course.at + at * course.span,
            to: course.at + (at + 1) * course.span,
            min: course.v[i + 1] * course.unit,
            max: course.v[i + 2] * course.unit,
            last,
        });
        at++;
    }
    spans.push({from: course.at + at * course.span, to: Infinity, min: last, max: last, last});
    return spans;
}

function span_at(spans, time) {
    let low = 0, high = spans.length - 1;
    while (low < high) {
        const middle = (low + high + 1) >> 1;
        if (spans[middle].from <= time)
            low = middle;
        else
            high = middle - 1;
    }
    return spans[low];
}

const run_ns = () => Math.max(1, process().heard);
const plot_width = (width) => Math.max(1, width - chart_left - chart_right);
const time_x = (time, width) => chart_left + plot_width(width) * Math.min(1, time / run_ns());

function x_time(x, width) {
    return Math.max(0, Math.min(1, (x - chart_left) / plot_width(width))) * run_ns();
}

/* For each column of pixels the least and the most that held in it. */
function columns_of(spans, width) {
    const lows = new Float64Array(width).fill(Infinity), highs = new Float64Array(width).fill(-1);
    for (const span of spans) {
        if (span.from > run_ns())
            break;
        const from = Math.floor(time_x(span.from, width)),
              to = Math.floor(time_x(Math.min(span.to, run_ns()), width));
        for (let x = Math.max(0, from); x <= to && x < width; x++) {
            if (span.min < lows[x])
                lows[x] = span.min;
            if (span.max > highs[x])
                highs[x] = span.max;
        }
    }
    return {lows, highs};
}

/* The steps of one edge, from the left to the right. */
function trace(context, values, y_of) {
    let is_open = false;
    for (let x = 0; x < values.length; x++) {
        const is_there = Number.isFinite(values[x]) && values[x] >= 0;
        if (is_there && !is_open)
            context.moveTo(x, y_of(values[x]));
        if (is_there) {
            context.lineTo(x, y_of(values[x]));
            context.lineTo(x + 1, y_of(values[x]));
        }
        is_open = is_there;
    }
}

function fill_below(context, values, y_of, height, style) {
    context.fillStyle = style;
    for (let x = 0; x < values.length; x++)
        if (Number.isFinite(values[x]) && values[x] > 0)
            context.fillRect(x, y_of(values[x]), 1, height - y_of(values[x]));
}

function draw_edge(context, values, y_of, style) {
    context.beginPath();
    trace(context, values, y_of);
    context.strokeStyle = style;
    context.lineWidth = 1.5;
    context.lineJoin = "round";
    context.stroke();
    context.lineWidth = 1;
}

/* A round number of bytes: two or three lines, or one where the chart is low. */
function grid_step(most, height) {
    let step = 1;
    while (step * (height > 90 ? 3.2 : 1.99) < most)
        step *= 2;
    return step;
}

function draw_grid(painted, y_of, most) {
    const {context, width, height} = painted, step = grid_step(most, height);
    context.font = "11.5px " + colour("text");
    context.textAlign = "left";
    for (let value = step; value <= most; value += step) {
        context.fillStyle = colour("line");
        context.fillRect(0, Math.round(y_of(value)), width - chart_right + 2, 1);
        context.fillStyle = colour("dim");
        context.fillText(bytes_text(value), width - chart_right + 8, y_of(value) + 4);
    }
}

function draw_marks(painted, is_named) {
    const {context, width, height} = painted, marks = process().marks;
    let free_x = -Infinity;
    context.font = "11.5px " + colour("text");
    context.textAlign = "left";
    for (let i = 0; i < marks.length; i += 2) {
        const x = Math.round(time_x(marks[i], width)) + 0.5;
        context.strokeStyle = colour("dim");
        context.globalAlpha = 0.55;
        context.setLineDash([2, 3]);
        context.beginPath();
        context.moveTo(x, is_named ? 2 : 0);
        context.lineTo(x, height);
        context.stroke();
        context.setLineDash([]);
        context.globalAlpha = 1;
        const name = marks[i + 1].length > 24 ? marks[i + 1].slice(0, 23) + "…" : marks[i + 1];
        if (!is_named || x < free_x ||
            x + 4 + context.measureText(name).width > width - chart_right)
            continue;
        context.fillStyle = colour("dim");
        context.fillText(name, x + 4, 11);
        free_x = x + 14 + context.measureText(name).width;
    }
}

function draw_failures(chart, painted) {
    const {context, width, height} = painted;
    for (const failure of process().failures) {
        if (failure.region !== chart.name && !(failure.clash && chart.name === "CB"))
            continue;
        if (!chart.ids.includes(failure.device))
            continue;
        const x = time_x(failure.time, width);
        context.fillStyle = colour("bad");
        context.fillRect(x - 0.75, chart_top, 1.5, height - chart_top);
        context.beginPath();
        context.moveTo(x - 6, chart_top - 9);
        context.lineTo(x + 6, chart_top - 9);
        context.lineTo(x, chart_top + 2);
        context.fill();
    }
}

function draw_peak(chart, painted, y_of, top) {
    if (!(chart.region.peak > 0))
        return;
    const {context, width} = painted, text = "peak " + bytes_text(chart.region.peak);
    const x = time_x(chart.peak_at, width), y = y_of(chart.region.peak);
    context.beginPath();
    context.arc(x, y, 3.5, 0, 7);
    context.fillStyle = colour("accent");
    context.fill();
    context.lineWidth = 1.5;
    context.strokeStyle = colour("paper");
    context.stroke();
    context.font = "600 11.5px " + colour("text");
    const text_width = context.measureText(text).width,
          is_left = x + 10 + text_width > width - chart_right;
    context.textAlign = is_left ? "right" : "left";
    context.fillStyle = colour("accent");
    context.fillText(text, is_left ? Math.max(x - 8, text_width) : x + 8, Math.max(top - 4, y - 4));
}

function draw_chart(chart) {
    const painted = paint(chart.canvas), {context, width, height} = painted;
    if (width === 0)
        return;
    const is_first = chart === charts[0],
          top = chart_top + (is_first && process().marks.length > 0 ? 16 : 0);
    const capacity = chart.region.capacity, most = Math.max(1, chart.region.peak);
    const scale = capacity > 0 && most > capacity / 3 ? Math.max(capacity, most) : most;
    const y_of = (value) => height - (height - top) * value / (scale * 1.04);
    const {lows, highs} = columns_of(chart.spans, Math.ceil(width));
    context.fillStyle = colour("panel");
    context.fillRect(0, 0, width - chart_right + chart_left, height);
    draw_grid(painted, y_of, scale);
    fill_below(context, highs, y_of, height, colour("accent-faint"));
    fill_below(context, lows, y_of, height, colour("accent-soft"));
    draw_edge(context, highs, y_of, colour("accent"));
    if (scale === capacity) {
        context.fillStyle = colour("bad");
        for (let x = 0; x < width - chart_right; x += 8)
            context.fillRect(x, Math.round(y_of(capacity)), 4, 1);
        context.font = "11.5px " + colour("text");
        context.textAlign = "left";
        context.fillText("full", width - chart_right + 8, y_of(capacity) + 4);
    }
    draw_marks(painted, is_first);
    draw_failures(chart, painted);
    draw_peak(chart, painted, y_of, top);
    if (chart.cross !== undefined) {
        context.fillStyle = colour("ink");
        context.fillRect(Math.round(time_x(chart.cross, width)), 0, 1, height);
    }
}

function nice_step(span) {
    const rough = span / 6, minute = 60e9;
    if (process().untimed)
        return span / 4;
    for (const step of [1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 1440, 2880, 7200, 14400].map(
             (n) => n * minute))
        if (rough > 30e9 && step >= rough)
            return step;
    const power = 10 ** Math.floor(Math.log10(rough));
    return [1, 2, 5, 10].map((n) => n * power).find((step) => step >= rough);
}

/* All ticks of an axis in one unit. */
function tick_text(time, step) {
    if (time === 0)
        return "0";
    if (run_ns() >= 120e9 || process().untimed)
        return time_text(time);
    const [unit, word] = run_ns() >= 1e9   ? [1e9, " s"]
                         : run_ns() >= 1e6 ? [1e6, " ms"]
                                           : [1e3, " µs"];
    return (time / unit).toFixed(Math.max(0, Math.ceil(-Math.log10(step / unit) - 1e-9))) + word;
}

function draw_axis() {
    const canvas = $("axis") && $("axis").querySelector("canvas");
    if (!canvas || canvas.clientWidth === 0)
        return;
    const {context, width} = paint(canvas), step = nice_step(run_ns());
    context.font = "11.5px " + colour("text");
    context.fillStyle = colour("dim");
    for (let time = 0; time <= run_ns(); time += step) {
        const x = time_x(time, width), text = tick_text(time, step);
        const half = context.measureText(text).width / 2;
        context.fillRect(x, 0, 1, 4);
        context.textAlign = x < half ? "left" : x + half > width ? "right" : "center";
        context.fillText(text, x, 16);
    }
}

/* What there is to say of one moment. */
function chart_words(chart, time) {
    const span = span_at(chart.spans, time), lines = [];
    lines.push(span.min === span.max ? exact_text(span.last)
                                     : bytes_text(span.min) + " … " + exact_text(span.max));
    lines.unshift(chart.name + " at " + time_text(time));
    const near = run_ns() / 100, marks = process().marks;
    for (let i = 0; i < marks.length && lines.length < 6; i += 2)
        if (Math.abs(marks[i] - time) < near)
            lines.push("mark “" + marks[i + 1] + "” at " + time_text(marks[i]));
    for (const failure of process().failures)
        if (Math.abs(failure.time - time) < near && failure.region === chart.name &&
            lines.length < 8)
            lines.push(failure.clash ? "circular buffers clash with L1 buffers"
                                     : "out of memory, " + bytes_text(failure.wanted) + " wanted");
    return lines;
}

function set_cross(time) {
    for (const chart of charts) {
        chart.cross = time;
        draw_chart(chart);
    }
}

function point_at(chart, time, y) {
    const box = chart.canvas.getBoundingClientRect();
    set_cross(time);
    show_tip(box.left + time_x(time, box.width), y === undefined ? box.top + 30 : y,
             ...chart_words(chart, time));
}

function chart_keys(chart, event) {
    const steps = {ArrowLeft: -1, ArrowRight: 1, PageUp: -10, PageDown: 10, Home: -1000, End: 1000};
    if (event.key === "Escape")
        return leave_charts();
    if (!(event.key in steps))
        return undefined;
    event.preventDefault();
    const from = chart.cross === undefined ? chart.peak_at : chart.cross;
    return point_at(chart,
                    Math.max(0, Math.min(run_ns(), from + steps[event.key] * run_ns() / 200)));
}

function leave_charts() {
    hide_tip();
    set_cross(undefined);
}

/* Of circular buffers the time of the peak is only known to the span. */
function peak_time(region, spans) {
    if (region.peak_at !== undefined)
        return region.peak_at;
    const highest =
        spans.reduce((best, span) => (span.max > best.max ? span : best), {max: -1, from: 0});
    return Math.min(highest.from, run_ns());
}

function chart_facts(name, region) {
    const facts = make("dl");
    const capacity = region.capacity > 0 ? [["capacity", bytes_text(region.capacity)]] : [];
    for (const [title, value] of [
             ["remains", bytes_text(region.now)],
             [name === "CB" ? "peak resident" : "peak", bytes_text(region.peak)], ...capacity])
        facts.append(make("div", "", make("dt", "", title), make("dd", "", value)));
    return facts;
}

function make_chart(name, region, kind) {
    const canvas = make("canvas"), spans = read_course(region.course);
    const chart = {canvas, name, region, spans, ids: kind.ids, peak_at: peak_time(region, spans)};
    const share = region.capacity > 0
                      ? meter(region.peak, region.capacity, region.peak > 0.9 * region.capacity)
                      : null;
    if (share)
        share.title = "peak: " + share_text(region.peak, region.capacity) + " of the capacity";
    canvas.tabIndex = 0;
    canvas.setAttribute("role", "img");
    canvas.setAttribute("aria-label", name + " over time: peak " + bytes_text(region.peak) +
                                          " at " + time_text(chart.peak_at) + ", " +
                                          bytes_text(region.now) +
                                          " remains. Arrow keys move along.");
    canvas.addEventListener("pointermove", (event) => {
        const box = canvas.getBoundingClientRect();
        point_at(chart, x_time(event.clientX - box.left, box.width), event.clientY);
    });
    canvas.addEventListener("pointerleave", leave_charts);
    canvas.addEventListener("blur", leave_charts);
    canvas.addEventListener("keydown", (event) => chart_keys(chart, event));
    charts.push(chart);
    return make("div", "chart" + (name === "DRAM" || name === "L1" ? "" : " small"),
                make("div", "", make("h3", "", name), chart_facts(name, region), share), canvas);
}

/* A button for each kind of device, when there are several. */
function make_tiles() {
    const kinds = device_kinds(), chosen = chosen_kind();
    const tiles = kinds.length < 2 ? [] : kinds.slice(0, 64).map((kind) => {
        const used =
            regions.filter((name) => kind.regions[name] && (name === "DRAM" || name === "L1"));
        const tile = make(
            "button", "", kind_title(kind),
            make("small", "",
                 used.map((name) => name + " " + bytes_text(kind.regions[name].peak)).join(" · ") ||
                     "not used"));
        tile.type = "button";
        tile.setAttribute("aria-pressed", String(kind === chosen || kind.ids[0] === chosen.ids[0]));
        tile.addEventListener("click", () => choose_device(kind.ids[0]));
        return tile;
    });
    fill($("tiles"), ...tiles);
}

function make_timeline() {
    const kind = chosen_kind();
    charts.length = 0;
    make_tiles();
    const names = kind ? regions.filter((name) => kind.regions[name] && has_region(name)) : [];
    $("timeline-title").textContent =
        "Memory over time" + (kind ? ", " + kind_title(kind) : "") +
        (kind && (kind.board || kind.arch)
             ? " · " + [kind.board, kind.arch].filter(Boolean).join(" ")
             : "");
    fill($("charts"), ...names.map((name) => make_chart(name, kind.regions[name], kind)));
    if (names.length === 0) {
        fill($("charts"),
             make("p", "dim",
                  "Nothing was allocated" + (state.region ? " in " + state.region : "") + "."));
        return;
    }
    const axis = make("div", "chart", make("div"), make("canvas"));
    axis.id = "axis";
    $("charts").append(axis);
    if (names.some((name) => kind.regions[name].now > kind.regions[name].peak))
        $("charts").append(
            make("p", "dim",
                 "More remains than the peak: it was left at several times, never all at once."));
}

function draw_timeline() {
    charts.forEach(draw_chart);
    draw_axis();
}
