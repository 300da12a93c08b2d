/** Subscription filters: AND across fields, OR within one (map-mail 2.5, 4). A filter only narrows what may be seen. */
import { z } from "zod";

const texts = z.array(z.string()).max(1000).optional();

/** A field that is unknown is refused, not ignored: ignoring it would mean "everything". */
export const subscriptionFilter = z.strictObject({
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

export type SubscriptionFilter = z.infer<typeof subscriptionFilter>;

/** What a filter can look at. */
export interface FilteredEvent {
  readonly type: string;
  readonly source: string;
  readonly sourceRole?: string;
  readonly data: Readonly<Record<string, unknown>>;
  /** For mail events: what the entry is about, where its data does not say so. */
  readonly mail?: MailFacts;
}

export interface MailFacts {
  readonly conversationId: string;
  readonly threadIds: readonly string[];
  readonly participantId?: string;
  readonly contentType?: string;
}

export type EventTest = (event: FilteredEvent) => boolean;

/** Prepared once per subscription. */
export function compileFilter(filter: SubscriptionFilter = {}): EventTest {
  const tests: EventTest[] = [];
  const oneOf = (values: readonly string[] | undefined, pick: (event: FilteredEvent) => unknown): void => {
    if (values === undefined || values.length === 0) return;
    const wanted = new Set<unknown>(values);
    tests.push((event) => wanted.has(pick(event)));
  };
  if (filter.eventTypes !== undefined && filter.eventTypes.length > 0) {
    const patterns = filter.eventTypes.map(typePattern);
    tests.push(({ type }) => patterns.some((matches) => matches(type)));
  }
  oneOf(filter.fromAgents, ({ source }) => source);
  oneOf(filter.fromRoles, ({ sourceRole }) => sourceRole);
  oneOf(filter.roles, ({ sourceRole }) => sourceRole);
  oneOf(filter.scopes, ({ data }) => data.scopeId);
  oneOf(filter.priorities, ({ data }) => data.priority);
  oneOf(filter.correlationIds, ({ data }) => data.correlationId);
  if (filter.metadataMatch !== undefined) tests.push(recordTest("metadata", filter.metadataMatch));
  if (filter.environmentMatch !== undefined) tests.push(recordTest("environment", filter.environmentMatch));
  // No event of ours is part of a trajectory.
  if (filter.trajectory !== undefined) tests.push(() => false);
  if (filter.mail !== undefined) tests.push(mailTest(filter.mail));
  return (event) => tests.every((test) => test(event));
}

function typePattern(pattern: string): (type: string) => boolean {
  if (pattern === "*") return () => true;
  const wanted = plainType(pattern);
  if (!wanted.endsWith(".*")) return (type) => plainType(type) === wanted;
  const prefix = wanted.slice(0, -1);
  return (type) => plainType(type).startsWith(prefix);
}

/** Core events have underscores in the types and dots on the wire of the SDK's server: both are understood. */
function plainType(type: string): string {
  return type.replaceAll("_", ".");
}

function recordTest(field: string, wanted: Readonly<Record<string, unknown>>): EventTest {
  const expected = Object.entries(wanted).map(([key, value]) => [key, JSON.stringify(value)] as const);
  return ({ data }) => {
    const record = data[field];
    if (typeof record !== "object" || record === null) return expected.length === 0;
    const entries = new Map<string, unknown>(Object.entries(record));
    return expected.every(([key, value]) => JSON.stringify(entries.get(key)) === value);
  };
}

/** An empty string is a field that is not there. */
function mailTest(filter: NonNullable<SubscriptionFilter["mail"]>): EventTest {
  const { conversationId = "", threadId = "", participantId = "", contentType = "" } = filter;
  return ({ mail }) =>
    mail !== undefined &&
    (conversationId === "" || mail.conversationId === conversationId) &&
    (threadId === "" || mail.threadIds.includes(threadId)) &&
    (participantId === "" || mail.participantId === participantId) &&
    (contentType === "" || mail.contentType === contentType);
}
