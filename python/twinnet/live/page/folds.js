// Hosts that one link leads to, folded into one node at their switch. Nothing here knows the page.

const INSIDE = ["switch", "router"];

/** What can be folded in a network: for each switch or router with two hosts and more of one link each, its name, the
 * hosts, and the numbers of their links. */
export function foldsOf({ nodes, links }) {
  const kinds = new Map(nodes.map(({ name, kind }) => [name, kind]));
  const numbers = new Map(nodes.map(({ name }) => [name, []]));
  links.forEach(({ a, b }, number) => {
    numbers.get(a).push(number);
    numbers.get(b).push(number);
  });
  const found = new Map();
  for (const [host, ones] of numbers) {
    if (INSIDE.includes(kinds.get(host)) || ones.length !== 1) continue;
    const { a, b } = links[ones[0]];
    const hub = a === host ? b : a;
    if (!INSIDE.includes(kinds.get(hub))) continue;
    if (!found.has(hub)) found.set(hub, { hub, hosts: [], links: [] });
    found.get(hub).hosts.push(host);
    found.get(hub).links.push(ones[0]);
  }
  return [...found.values()].filter(({ hosts }) => hosts.length > 1);
}

/** The numbers of the ways from the switch of a fold to its hosts, and back. */
export function foldedWays({ hub, links: numbers }, links) {
  const there = numbers.map((number) => 2 * number + Number(links[number].a !== hub));
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
