/** Pages of large turns: as many as fit into one response, the rest on the next page. */
import { afterEach, beforeEach, expect, it } from "vitest";
import { Harness, type RawClient } from "./harness.js";

const TURNS = 12;
const WORDS = "x".repeat(900_000);

let map: Harness;
let ann: RawClient;
let conversationId: string;

beforeEach(async () => {
  map = await Harness.start();
  ann = await map.raw({ connect: { participantType: "client" } });
  const { conversation } = await ann.call("mail/create");
  conversationId = (conversation as { id: string }).id;
  for (let n = 0; n < TURNS; n++) {
    await ann.call("mail/turn", { conversationId, contentType: "x-n", content: `${n} ${WORDS}` });
  }
});
afterEach(() => map.stop());

interface Page {
  readonly turns: readonly { readonly content: string }[];
  readonly hasMore: boolean;
  readonly nextCursor?: string;
}

const numbers = (turns: Page["turns"]) => turns.map(({ content }) => Number.parseInt(content, 10));

/** Reads all pages and checks that none is too large. */
async function pages(method: string, params: object, cursorName: string): Promise<number[]> {
  const seen: number[] = [];
  for (let cursor: string | undefined, more = true; more; ) {
    const page = (await ann.call(method, {
      conversationId,
      limit: 500,
      ...params,
      ...(cursor !== undefined && { [cursorName]: cursor }),
    })) as unknown as Page;
    expect(JSON.stringify(page).length).toBeLessThan(6_000_000);
    seen.push(...numbers(page.turns));
    more = page.hasMore;
    cursor = page.nextCursor;
  }
  return seen;
}

const ALL = Array.from({ length: TURNS }, (_, n) => n);

it("mail/turns/list and mail/replay page through all large turns, in both directions", async () => {
  expect(await pages("mail/turns/list", {}, "cursor")).toEqual(ALL);
  expect(await pages("mail/turns/list", { order: "desc" }, "cursor")).toEqual(ALL.toReversed());
  expect(await pages("mail/replay", {}, "fromTurnId")).toEqual(ALL);
});

it("mail/get shows the most recent large turns, and mail/join returns a cursor to continue from", async () => {
  const { recentTurns } = await ann.call("mail/get", { conversationId, include: { recentTurns: 500 } });
  const recent = numbers(recentTurns as Page["turns"]);
  expect(recent).toEqual(ALL.toReversed().slice(0, recent.length));
  const bob = await map.raw();
  const { history, historyCursor } = await bob.call("mail/join", { conversationId, catchUp: { from: 0 } });
  const told = numbers(history as Page["turns"]);
  expect(told).toEqual(ALL.slice(0, told.length));
  const next = await bob.call("mail/replay", { conversationId, fromTurnId: historyCursor, limit: 1 });
  expect(numbers(next.turns as Page["turns"])).toEqual([told.length]);
});

it("map/replay pages through the events of large turns", async () => {
  const seen: number[] = [];
  for (let after: string | undefined, more = true; more; ) {
    const page = await ann.call("map/replay", {
      filter: { eventTypes: ["mail.turn.added"] },
      limit: 1000,
      ...(after !== undefined && { afterEventId: after }),
    });
    expect(JSON.stringify(page).length).toBeLessThan(6_000_000);
    const events = page.events as { eventId: string; event: { data: { turn: Page["turns"][number] } } }[];
    seen.push(...numbers(events.map(({ event }) => event.data.turn)));
    after = events.at(-1)?.eventId;
    more = page.hasMore === true;
  }
  expect(seen).toEqual(ALL);
});
