/**
 * Subscription filters: AND across fields, OR within one (REF-31). A filter only narrows what the subscriber may see.
 */
import { z } from "zod";
import { roughSize } from "./size.js";

const texts = z.array(z.string()).max(1000).optional();

/** Filters are held in memory with their subscriptions. */
const MAX_FILTER = 64 * 1024;

/** Unknown fields are rejected: ignoring one would widen the filter to everything. */
const filterFields = z.strictObject({
  eventTypes: texts,
  fromAgents: texts,
  fromRoles: texts,
  roles: texts,
  scopes: texts,
  priorities: texts,
  correlationIds: texts,
  metadataMatch: z.record(z.string(), z.unknown()).optional(),
  environmentMatch: z.record(z.string(), z.unknown()).optional(),
  trajectory: z.unknown().optional(),
  mail: z
    .strictObject({
      conversationId: z.string().optional(),
      threadId: z.string().optional(),
      participantId: z.string().optional(),
      contentType: z.string().optional(),
    })
    .optional(),
});

export const subscriptionFilter = filterFields.refine((filter) => roughSize(filter) <= MAX_FILTER, {
  message: `is larger than ${MAX_FILTER} bytes`,
});

export type SubscriptionFilter = z.infer<typeof subscriptionFilter>;

/** The fields that a filter can test. */
export interface FilteredEvent {
  readonly type: string;
  readonly source: string;
  readonly sourceRole?: string | undefined;
  readonly data: Readonly<Record<string, unknown>>;
  /** For mail events: facts about the entry that its data does not contain. */
  readonly mail?: MailFacts;
}

export interface MailFacts {
  readonly conversationId: string;
  readonly threadIds: readonly string[];
  readonly participantId?: string;
  readonly contentType?: string;
}

export type EventTest = (event: FilteredEvent) => boolean;

/** Compiled once per subscription. */
export function compileFilter(filter: SubscriptionFilter = {}): EventTest {
  const tests: EventTest[] = [];
  const oneOf = (values: readonly string[] | undefined, pick: (event: FilteredEvent) => unknown): void => {
    if (values === undefined || values.length === 0) return;
    const wanted = new Set<unknown>(values);
    tests.push((event) => wanted.has(pick(event)));
  };
  if (filter.eventTypes !== undefined && filter.eventTypes.length > 0) {
    tests.push(typeTest(filter.eventTypes));
  }
  oneOf(filter.fromAgents, ({ source }) => source);
  oneOf(filter.fromRoles, ({ sourceRole }) => sourceRole);
  oneOf(filter.roles, ({ sourceRole }) => sourceRole);
  oneOf(filter.scopes, ({ data }) => data.scopeId);
  oneOf(filter.priorities, ({ data }) => data.priority);
  oneOf(filter.correlationIds, ({ data }) => data.correlationId);
  if (filter.metadataMatch !== undefined) tests.push(recordTest("metadata", filter.metadataMatch));
  if (filter.environmentMatch !== undefined) tests.push(recordTest("environment", filter.environmentMatch));
  // This server emits no trajectory events.
  if (filter.trajectory !== undefined) tests.push(() => false);
  if (filter.mail !== undefined) tests.push(mailTest(filter.mail));
  return (event) => tests.every((test) => test(event));
}

/** Costs a lookup for each part of an event's type, however many patterns there are. */
function typeTest(patterns: readonly string[]): EventTest {
  if (patterns.includes("*")) return () => true;
  const wanted = new Set(patterns.map(plainType));
  return ({ type }) => {
    const plain = plainType(type);
    if (wanted.has(plain)) return true;
    for (let dot = plain.indexOf("."); dot >= 0; dot = plain.indexOf(".", dot + 1)) {
      if (wanted.has(`${plain.slice(0, dot)}.*`)) return true;
    }
    return false;
  };
}

/** Core event types use underscores in the protocol and dots on the wire of the SDK's server. Both match. */
function plainType(type: string): string {
  return type.replaceAll("_", ".");
}

function recordTest(field: string, wanted: Readonly<Record<string, unknown>>): EventTest {
  const expected = Object.entries(wanted).map(([key, value]) => [key, JSON.stringify(value)] as const);
  return ({ data }) => {
    const record = data[field];
    if (typeof record !== "object" || record === null) return expected.length === 0;
    const texts = fieldTexts(record);
    return expected.every(([key, value]) => texts.get(key) === value);
  };
}

/** The texts of a record's fields, made once for all filters. */
const knownTexts = new WeakMap<object, ReadonlyMap<string, string | undefined>>();

function fieldTexts(record: object): ReadonlyMap<string, string | undefined> {
  const known = knownTexts.get(record);
  if (known !== undefined) return known;
  const texts = new Map(Object.entries(record).map(([key, value]) => [key, JSON.stringify(value)]));
  knownTexts.set(record, texts);
  return texts;
}

/** An empty string counts as an absent field. */
function mailTest(filter: NonNullable<SubscriptionFilter["mail"]>): EventTest {
  const { conversationId = "", threadId = "", participantId = "", contentType = "" } = filter;
  return ({ mail }) =>
    mail !== undefined &&
    (conversationId === "" || mail.conversationId === conversationId) &&
    (threadId === "" || mail.threadIds.includes(threadId)) &&
    (participantId === "" || mail.participantId === participantId) &&
    (contentType === "" || mail.contentType === contentType);
}
