/** The chart of requests and faults a second, by uPlot. What it shows is also said in words. */
import { useEffect, useRef } from "preact/hooks";
import uPlot from "uplot";
import { colour } from "./colour";
import type { Sample } from "./live";
import { rate, words } from "./words";

export function Chart({ samples, look }: { samples: Sample[]; look: string }) {
  const box = useRef<HTMLDivElement>(null);
  const plot = useRef<uPlot | null>(null);
  const data = (): uPlot.AlignedData => [samples.map(({ at }) => at), samples.map(({ requests }) => requests), samples.map(({ faults }) => faults)];
  const isEmpty = samples.length < 2;
  useEffect(() => {
    const element = box.current;
    if (!element || isEmpty) return;
    const axis = { stroke: colour("--dim"), grid: { stroke: colour("--line"), width: 1 }, ticks: { show: false }, font: "12px system-ui, sans-serif" };
    const scale = (_: uPlot, __: number, max: number): [number, number] => [0, Math.max(1, max * 1.1)];
    const made = new uPlot(
      {
        width: element.clientWidth,
        height: 180,
        legend: { show: false },
        cursor: { show: false },
        scales: { y: { range: scale } },
        axes: [{ ...axis, size: 26, incrs: [5, 15, 30, 60, 120], values: (_, at) => at.map((one) => new Date(one * 1000).toLocaleTimeString([], { hour: "2-digit", minute: "2-digit", second: "2-digit" })), space: 90 }, { ...axis, size: 44, values: (_, all) => all.map((one) => rate(one)) }],
        series: [{}, { stroke: colour("--accent"), width: 2, fill: colour("--accent-soft"), points: { show: false } }, { stroke: colour("--bad"), width: 2, dash: [5, 3], points: { show: false } }],
      },
      data(),
      element,
    );
    plot.current = made;
    const observer = new ResizeObserver(() => made.setSize({ width: element.clientWidth, height: 180 }));
    observer.observe(element);
    return () => {
      observer.disconnect();
      made.destroy();
      plot.current = null;
    };
  }, [isEmpty, look]);
  useEffect(() => plot.current?.setData(data()), [samples]);
  const last = samples.at(-1);
  if (isEmpty || !last) return <p class="dim">{words.chartEmpty}</p>;
  return (
    <>
      <p class="legend">
        <span class="key requests" aria-hidden="true" /> {words.requestsPerSecond} <span class="key faults" aria-hidden="true" /> {words.faultsPerSecond}
      </p>
      <div ref={box} class="chart" role="img" aria-label={`${words.chart}. ${words.chartSays(rate(last.requests), rate(last.faults))}`} />
    </>
  );
}
