// Hosts that one link leads to, folded into one node at their switch, and all that hangs below a switch, folded at it.
// Nothing here knows the page.

const INSIDE = ["switch", "router"];

/** What can be folded in a network: for each switch or router with two hosts and more of one link each, its name, the
 * hosts (`below`), and the numbers of their links. For each with switches below it, too: all that only it leads to and
 * that stands lower, with the number of `switches` among these, and the numbers of all their links. */
export function foldsOf({ nodes, links }) {
  const numbers = new Map(nodes.map(({ name }) => [name, []]));
  links.forEach(({ a, b }, number) => {
    numbers.get(a).push(number);
    numbers.get(b).push(number);
  });
  return [...hostFolds(nodes, links, numbers), ...treeFolds(nodes, links, numbers)];
}

function hostFolds(nodes, links, numbers) {
  const kinds = new Map(nodes.map(({ name, kind }) => [name, kind]));
  const found = new Map();
  for (const [host, ones] of numbers) {
    if (INSIDE.includes(kinds.get(host)) || ones.length !== 1) continue;
    const { a, b } = links[ones[0]];
    const hub = a === host ? b : a;
    if (!INSIDE.includes(kinds.get(hub))) continue;
    if (!found.has(hub)) found.set(hub, { hub, below: [], switches: 0, links: [] });
    found.get(hub).below.push(host);
    found.get(hub).links.push(ones[0]);
  }
  return [...found.values()].filter(({ below }) => below.length > 1);
}

function treeFolds(nodes, links, numbers) {
  const known = new Map(nodes.map((node) => [node.name, node]));
  const isInside = (name) => INSIDE.includes(known.get(name).kind);
  const other = (name, { a, b }) => (a === name ? b : a);
  const beside = (name) => numbers.get(name).map((number) => other(name, links[number]));
  return nodes.filter(({ name }) => isInside(name)).flatMap(({ name: hub, y }) => {
    const isLower = (name) => known.get(name).y > y;
    const below = [...new Set(beside(hub))].flatMap((first) => reached(first, hub, beside, isLower));
    const hidden = [...new Set(below)];
    const switches = hidden.filter(isInside).length;
    const all = [...new Set(hidden.flatMap((name) => numbers.get(name)))];
    return switches > 0 ? [{ hub, below: hidden, switches, links: all.sort((one, other) => one - other) }] : [];
  });
}

/** What `first` leads to without `hub`; nothing if not all of it `isLower`. */
function reached(first, hub, beside, isLower) {
  const found = new Set([first]);
  for (const name of found) {
    if (!isLower(name)) return [];
    for (const next of beside(name)) if (next !== hub) found.add(next);
  }
  return [...found];
}

/** True if all of the fold `other` is in a larger one, `fold`. */
export function covers(fold, other) {
  return fold.below.length > other.below.length && fold.below.includes(other.below[0]);
}

/** The numbers of the ways from the switch of a fold to what is below it, and back. */
export function foldedWays({ hub, links: numbers }, links) {
  const own = numbers.filter((number) => links[number].a === hub || links[number].b === hub);
  const there = own.map((number) => 2 * number + Number(links[number].a !== hub));
  return [there, there.map((place) => place ^ 1)];
}

/** Several ways as one: what they carry, hold and drop together, and the load of the busiest. */
export function summed(ways) {
  const known = ways.filter((way) => way.known !== false);
  const sum = (of) => known.reduce((total, way) => total + of(way), 0);
  const loads = known.flatMap(({ load }) => (load === null ? [] : [load]));
  return {
    known: known.length > 0,
    rate: sum(({ rate }) => rate),
    load: loads.length > 0 ? Math.max(...loads) : null,
    queue: sum(({ queue }) => queue),
    drops: sum(({ drops }) => drops),
    marks: sum(({ marks }) => marks),
    lossy: known.some(({ lossy }) => lossy === true),
    up: known.some(({ up }) => up),
    line: null,
  };
}
