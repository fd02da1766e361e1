/* ---- the flame graph ---- */

const flame_row = 24, flame_most = 1500;
let flame_root = null;

function flame_node(name, number, parent) {
    return {name, number, parent, weight: 0, count: 0, bad: 0, children: new Map()};
}

function flame_add(root, origin, weight, count) {
    let node = root;
    const path = [
        ["region " + origin.region, -1], ...origin.stack.map((number) => [String(number), number])
    ];
    for (const step of [null, ...path]) {
        if (step) {
            if (!node.children.has(step[0]))
                node.children.set(step[0],
                                  flame_node(step[1] < 0 ? origin.region : data.frames[step[1]][0],
                                             step[1], node));
            node = node.children.get(step[0]);
        }
        node.weight += weight;
        node.count += count;
        if (origin.suspect && state.flame !== "allocated")
            node.bad += weight;
    }
}

function flame_tree() {
    const root = flame_node("all", -1, null);
    for (const origin of process().origins) {
        const weight = weight_of(origin, state.flame);
        if (is_chosen(origin) && weight > 0)
            flame_add(root, origin, weight, number_of(origin, state.flame));
    }
    return root;
}

/* The node that was zoomed into, as far as it is still there. */
function flame_top() {
    let node = flame_root;
    for (const key of state.zoom) {
        if (!node.children.has(key))
            break;
        node = node.children.get(key);
    }
    return node;
}

function flame_path(node) {
    const path = [];
    for (; node.parent; node = node.parent)
        path.unshift([...node.parent.children].find(([, child]) => child === node)[0]);
    return path;
}

function flame_words(node) {
    return [
        node.name, exact_text(node.weight) + " " + of_words[state.flame] + ", " +
                       share_text(node.weight, flame_root.weight) + ", " +
                       plural(node.count, "allocation", "allocations")
    ];
}

function flame_say(node) {
    const [name, size] = flame_words(node),
                 frame = node.number >= 0 ? frame_words(node.number) : null;
    fill($("flame-said"), make("code", "", make("b", "", name)), " ", make("span", "dim", size),
         frame && frame.source ? make("span", "source", frame.source) : null);
}

function flame_zoom(node) {
    state.zoom = flame_path(node);
    make_flame();
    const first = $("flame-graph").querySelector("[aria-selected=true]");
    if (first)
        first.focus();
}

/* Left and right to what lies beside, down to the largest child, up to the parent. */
function flame_keys(event, node, shown) {
    const siblings = node.parent ? shown.filter((other) => other.node.parent === node.parent) : [];
    const at = siblings.findIndex((other) => other.node === node);
    const goals = {
        ArrowLeft: () => siblings[at - 1],
        ArrowRight: () => siblings[at + 1],
        ArrowUp: () => shown.find((other) => other.node === node.parent),
        ArrowDown: () => shown.find((other) => other.node.parent === node),
        Home: () => shown[0],
    };
    if (event.key === "Escape") {
        event.preventDefault();
        flame_zoom(flame_root);
    } else if (event.key in goals) {
        event.preventDefault();
        const goal = goals[event.key]();
        if (goal)
            goal.button.focus();
    }
}

/* Which frames are wide enough to be seen, the outermost and widest first. */
function flame_layout(top, width) {
    const shown = [], lineage = [];
    for (let node = top.parent; node; node = node.parent)
        lineage.unshift(node);
    lineage.forEach((node, depth) => shown.push({node, depth, left: 0, width: 1, is_above: true}));
    let level = [{node: top, depth: lineage.length, left: 0, width: 1}];
    while (level.length > 0 && shown.length < flame_most) {
        shown.push(...level.slice(0, flame_most - shown.length));
        const next = [];
        for (const {node, depth, left, width: share} of level) {
            let at = left;
            for (const child of [...node.children.values()].sort((a, b) => b.weight - a.weight)) {
                const part = share * child.weight / node.weight;
                if (part * width >= 2)
                    next.push({node: child, depth: depth + 1, left: at, width: part});
                at += part;
            }
        }
        level = next;
    }
    return shown;
}

function flame_button(item, top, shown, width) {
    const {node, depth, left, width: share} = item,
                                     button =
                                         make("button", "", share * width > 24 ? node.name : "");
    const heat = node.bad === 0 ? 0 : node.bad > 0.9 * node.weight ? 3 : 2;
    button.type = "button";
    button.classList.add("heat" + (heat === 0 ? depth % 2 : heat));
    if (share * width <= 24)
        button.classList.add("slim");
    if (item.is_above)
        button.classList.add("above");
    if (state.query && node.name.toLowerCase().includes(state.query))
        button.classList.add("hit");
    button.style.left = 100 * left + "%";
    button.style.width = 100 * share + "%";
    button.style.top = depth * flame_row + "px";
    button.setAttribute("role", "treeitem");
    button.setAttribute("aria-level", String(depth + 1));
    button.setAttribute("aria-selected", String(node === top));
    button.setAttribute("aria-label", flame_words(node).join(", "));
    button.tabIndex = node === top ? 0 : -1;
    button.addEventListener("click", () => flame_zoom(node));
    button.addEventListener("focus", () => flame_say(node));
    button.addEventListener("keydown", (event) => flame_keys(event, node, shown));
    button.addEventListener(
        "pointermove", (event) => show_tip(event.clientX, event.clientY, ...flame_words(node)));
    button.addEventListener("pointerenter", () => flame_say(node));
    button.addEventListener("pointerleave", hide_tip);
    item.button = button;
    return button;
}

function say_path(top) {
    const hits = state.query === ""
                     ? 0
                     : process()
                           .origins.filter((origin) => is_chosen(origin) && matches(origin))
                           .reduce((sum, origin) => sum + weight_of(origin, state.flame), 0);
    const reset = make("button", "", "zoom out");
    reset.type = "button";
    reset.addEventListener("click", () => flame_zoom(flame_root));
    fill($("flame-path"), top !== flame_root ? reset : null,
         flame_root.weight === 0
             ? state.flame === "remaining" ? "Nothing remains." : "Nothing to draw."
         : top !== flame_root ? flame_words(top).join(": ")
                              : bytes_text(top.weight) + " " + of_words[state.flame] +
                                    "; red is suspect; click or Enter zooms",
         state.query
             ? " · “" + state.query + "” is in " + share_text(hits, flame_root.weight) + " of it"
             : "");
}

function make_flame() {
    const graph = $("flame-graph"), width = graph.clientWidth || 1000;
    hide_tip();
    flame_root = flame_tree();
    const top = flame_top(), shown = flame_root.weight > 0 ? flame_layout(top, width) : [];
    fill(graph, ...shown.map((item) => flame_button(item, top, shown, width)));
    graph.style.height =
        (shown.reduce((most, item) => Math.max(most, item.depth), -1) + 1) * flame_row + "px";
    fill($("flame-said"));
    say_path(top);
}
