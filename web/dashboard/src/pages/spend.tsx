/** What answers cost: by key, model, route, agent or day, against the budgets, and what of it no client got. */
import { useEffect, useState } from "preact/hooks";
import { get } from "../api";
import type { Budget, SpendReport, SpendRow } from "../api";
import { Days } from "../days";
import { useEvery } from "../live";
import { Empty, ErrorText } from "../parts";
import { moment, money, number, percent, words } from "../words";

const BY = ["key", "model", "route", "agent", "day"] as const;
type By = (typeof BY)[number];
const SPANS = ["today", "week", "days30", "month"] as const;
type Span = (typeof SPANS)[number];
const LENGTH: Record<Span, number> = { today: 0, week: 6, days30: 29, month: 0 };

/** So many days before this one. */
function before(day: string, days: number): string {
  const date = new Date(`${day}T00:00:00Z`);
  date.setUTCDate(date.getUTCDate() - days);
  return date.toISOString().slice(0, 10);
}

/** Whether nothing of it has a known price: that is not the same as free. */
const isUnknown = ({ input_tokens, output_tokens, unpriced_tokens }: SpendRow) => unpriced_tokens > 0 && unpriced_tokens >= input_tokens + output_tokens;

export function Spend({ look }: { look: string }) {
  const [by, setBy] = useState<By>("key");
  const [span, setSpan] = useState<Span>("month");
  const [report, setReport] = useState<SpendReport | null>(null);
  const [days, setDays] = useState<SpendReport | null>(null);
  const [error, setError] = useState<unknown>(null);
  const read = async () => {
    try {
      // The gateway knows in which zone a day begins: the last day is its own.
      const query = async (by: By) => {
        if (span === "month") return get<SpendReport>(`spend?by=${by}`);
        const { to } = await get<SpendReport>("spend?by=day");
        return get<SpendReport>(`spend?by=${by}&from=${before(to, LENGTH[span])}&to=${to}`);
      };
      const [shown, all] = await Promise.all([query(by), query("day")]);
      setReport(shown);
      setDays(all);
      setError(null);
    } catch (failure) {
      setError(failure);
    }
  };
  useEffect(() => void read(), [by, span]);
  useEvery(5_000, () => void read());
  if (!report || !days) return error ? <ErrorText error={error} /> : <p class="dim">{words.spendReading}</p>;
  const { currency, total, budgets } = report;
  const cost = (units: number) => money(units, currency);
  const isEmpty = total.attempts === 0;
  return (
    <>
      <div class="card-head">
        <h1>{words.spend}</h1>
        <p class="dim">{words.spendDays(report.from, report.to, report.zone)}</p>
        <label class="push span">
          <span class="hidden">{words.spendSpan}</span>
          <select value={span} onChange={(event) => setSpan(event.currentTarget.value as Span)}>
            {SPANS.map((one) => (
              <option key={one} value={one}>
                {words.spendSpans[one]}
              </option>
            ))}
          </select>
        </label>
      </div>
      <ErrorText error={error} />
      {budgets.length > 0 ? (
        <section class="card" aria-labelledby="budgets-title">
          <h2 id="budgets-title">{words.budgets}</h2>
          <ul class="budgets">
            {budgets.map((budget) => (
              <BudgetLine key={`${budget.key} ${budget.period}`} budget={budget} currency={currency} />
            ))}
          </ul>
        </section>
      ) : null}
      {isEmpty ? (
        <section class="card">
          <Empty title={words.spendEmpty} why={words.spendEmptyWhy} code={`curl ${location.origin}/v1/chat/completions -H 'content-type: application/json' \\\n  -d '{"model":"sim/ok","messages":[{"role":"user","content":"hello"}]}'`} />
        </section>
      ) : (
        <>
          <dl class="tiles">
            <Tile name={words.cost} value={isUnknown(total) ? words.unknown : cost(total.cost)} why={total.unpriced_tokens > 0 ? words.unpriced(number(total.unpriced_tokens)) : words.listPrices} />
            <Tile name={words.tokens} value={number(total.input_tokens + total.output_tokens)} why={words.tokensWhy(number(total.input_tokens), number(total.output_tokens))} />
            <Tile name={words.spendAttempts} value={number(total.attempts)} why={total.estimated_attempts > 0 ? words.estimated(number(total.estimated_attempts)) : words.spendAttemptsWhy} />
            <Tile name={words.lostCost} value={cost(total.lost_cost)} why={words.lostWhy(number(total.lost_attempts))} />
            <Tile name={words.lesserCost} value={cost(total.lesser_cost)} why={words.lesserWhy} />
          </dl>
          {report.from === report.to || total.cost === 0 ? null : (
            <section class="card" aria-labelledby="days-title">
              <h2 id="days-title">{words.costByDay}</h2>
              <Days report={days} look={look} />
            </section>
          )}
          <section class="card" aria-labelledby="rows-title">
            <div class="card-head">
              <h2 id="rows-title">{words.spendRows}</h2>
              <div class="choices push" role="group" aria-label={words.spendBy}>
                {BY.map((one) => (
                  <button key={one} type="button" aria-pressed={one === by} onClick={() => setBy(one)}>
                    {words.spendBys[one]}
                  </button>
                ))}
              </div>
            </div>
            <Rows report={report} />
          </section>
        </>
      )}
    </>
  );
}

function Tile({ name, value, why }: { name: string; value: string; why: string }) {
  return (
    <div>
      <dt>{name}</dt>
      <dd>{value}</dd>
      <dd class="dim">{why}</dd>
    </div>
  );
}

/** A budget as a bar; its words say what the bar shows. */
export function BudgetLine({ budget, currency }: { budget: Budget; currency: string }) {
  const tone = budget.share >= 1 ? "bad" : budget.share >= 0.8 ? "warn" : "good";
  const name = words.budgetOf(budget.key, words.periods[budget.period] ?? budget.period);
  return (
    <li>
      <div class="card-head">
        <span class="budget-name">{name}</span>
        <span class="push">{words.budgetSpent(money(budget.spent, currency), money(budget.limit, currency), percent(budget.share))}</span>
      </div>
      <div class={`meter ${tone}`} role="meter" aria-label={name} aria-valuemin={0} aria-valuemax={100} aria-valuenow={Math.min(100, Math.round(budget.share * 100))}>
        <span style={{ width: `${Math.min(100, budget.share * 100)}%` }} />
      </div>
      <p class="dim">{budget.share >= 1 ? words.budgetOver(moment(budget.renews_at)) : words.budgetRenews(moment(budget.renews_at))}</p>
    </li>
  );
}

function Rows({ report }: { report: SpendReport }) {
  const { currency, rows, total } = report;
  const dearest = Math.max(...rows.map(({ cost }) => cost), 0);
  const cost = (row: SpendRow) => (isUnknown(row) ? words.unknown : money(row.cost, currency));
  const shown = report.by === "day" ? [...rows].reverse() : rows;
  return (
    <div class="table spend" tabIndex={0} role="group" aria-label={words.spendRows}>
      <table>
        <thead>
          <tr>
            <th scope="col">{words.spendBys[report.by]}</th>
            <th scope="col" class="number">
              {words.cost}
            </th>
            <th scope="col" class="number">
              {words.input}
            </th>
            <th scope="col" class="number">
              {words.outputTokens}
            </th>
            <th scope="col" class="number">
              {words.spendAttempts}
            </th>
            <th scope="col" class="number">
              {words.lostCost}
            </th>
          </tr>
        </thead>
        <tbody>
          {shown.map((row) => (
            <tr key={row.name}>
              <th scope="row">
                {row.name === "-" ? words.none : row.name}
                <span class="share" aria-hidden="true" style={{ width: dearest > 0 ? `${(100 * row.cost) / dearest}%` : "0" }} />
              </th>
              <td class="number">{cost(row)}</td>
              <td class="number">{number(row.input_tokens)}</td>
              <td class="number">{number(row.output_tokens)}</td>
              <td class="number">{number(row.attempts)}</td>
              <td class="number">{row.lost_attempts > 0 ? money(row.lost_cost, currency) : "–"}</td>
            </tr>
          ))}
        </tbody>
        <tfoot>
          <tr>
            <th scope="row">{words.total}</th>
            <td class="number">{cost(total)}</td>
            <td class="number">{number(total.input_tokens)}</td>
            <td class="number">{number(total.output_tokens)}</td>
            <td class="number">{number(total.attempts)}</td>
            <td class="number">{total.lost_attempts > 0 ? money(total.lost_cost, currency) : "–"}</td>
          </tr>
        </tfoot>
      </table>
    </div>
  );
}
