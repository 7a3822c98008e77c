// The groups and meters of a switch as rows: each with its buckets or bands below it.

/** Rows of groups and meters from two looks at them; `before` is null at the first. */
export function groupRows(told, before) {
  const then = new Map((before === null ? [] : lines(before)).map((line) => [line.key, line]));
  return lines(told).map(({ key, cells, frames }) => {
    const earlier = then.get(key);
    return {
      key,
      cells,
      counts: earlier !== undefined && frames > earlier.frames,
      isNew: before !== null && earlier === undefined,
    };
  });
}

function lines({ groups, meters }) {
  return [
    ...groups.flatMap((group) => {
      const name = `group ${group.group}`;
      const buckets = group.buckets.map((bucket, place) =>
        line(`${name} bucket ${place}`, ["", `bucket ${place}${conditions(group, bucket)}`, bucket.actions], bucket),
      );
      return [line(name, [name, group.kind.replace("_", " "), ""], group), ...buckets];
    }),
    ...meters.flatMap((meter) => {
      const name = `meter ${meter.meter}`;
      const unit = meter.unit === "kbps" ? "kbit/s" : "frames/s";
      const bands = meter.bands.map((band, place) => {
        const does = band.raises === undefined ? "drops" : `raises the drop precedence by ${band.raises}`;
        return line(`${name} band ${place}`, ["", `above ${band.rate} ${unit}`, does], band);
      });
      return [line(name, [name, "", "measures"], meter), ...bands];
    }),
  ];
}

function line(key, cells, { frames, bytes }) {
  return { key: `${key} ${cells.join(" ")}`, cells: [...cells, frames, bytes], frames };
}

/** When a bucket is used. */
function conditions({ kind }, { weight, watch_port: port, watch_group: group, live }) {
  const said = [];
  if (kind === "select") said.push(`weight ${weight}`);
  if (port !== undefined) said.push(`port ${port}`);
  if (group !== undefined) said.push(`group ${group}`);
  const up = port !== undefined || group !== undefined ? (live ? " up" : " down") : "";
  return said.length === 0 ? "" : `, ${said.join(", ")}${up}`;
}
