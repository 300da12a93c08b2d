/**
 * The caller behind several ids. What a conversation decided about one id of a caller holds for its other ids, too:
 * otherwise a member would shed a removal, a mute or a limited history by taking another id (decision F1).
 */
import { withinCeiling } from "./roles.js";
import {
  activePeriod,
  type ConversationState,
  latestPeriod,
  type MembershipPeriod,
  type ParticipantRecord,
  periodAsOf,
} from "./state.js";
import type { Actor, Permissions } from "./types.js";

/** Owners of ids that the journal does not name: those that were invited before they had an owner. */
export type Owners = ReadonlyMap<string, string>;

const PRINCIPAL_ID = /^(user|admin|member):/;

/** Whose id it is. `user:ann` is the caller's own id; other ids are as the journal or `owners` say. */
function principalOf(
  record: Pick<ParticipantRecord, "id" | "principal">,
  owners: Owners,
): string | undefined {
  return record.principal ?? owners.get(record.id) ?? (PRINCIPAL_ID.test(record.id) ? record.id : undefined);
}

/** Ids of the conversation whose owner the journal does not name. */
export function unresolvedIds({ participants }: ConversationState): string[] {
  return [...participants.values()]
    .filter((record) => principalOf(record, NOBODY) === undefined)
    .map(({ id }) => id);
}

const NOBODY: Owners = new Map();

/** What a conversation has decided about a caller, under any of its ids. */
export interface Standing {
  readonly records: readonly ParticipantRecord[];
  /** Removed, and not invited again since. */
  readonly removed: boolean;
  /** The id of the most recent membership. */
  readonly latest: { readonly id: string; readonly period: MembershipPeriod } | undefined;
}

export function standingOf(
  state: ConversationState,
  asked: Pick<Actor, "principal"> & { readonly identities: ReadonlySet<string> },
  owners: Owners = NOBODY,
): Standing {
  const records: ParticipantRecord[] = [];
  let removedAt = 0;
  let grantedAt = 0;
  let latest: Standing["latest"];
  for (const record of state.participants.values()) {
    const own =
      asked.identities.has(record.id) ||
      (asked.principal !== undefined && principalOf(record, owners) === asked.principal);
    if (!own) continue;
    records.push(record);
    for (const period of record.periods) {
      if (!period.own) grantedAt = Math.max(grantedAt, period.joined);
      if (period.removed === true) removedAt = Math.max(removedAt, period.left ?? 0);
      if (latest === undefined || period.joined > latest.period.joined) latest = { id: record.id, period };
    }
  }
  if (latest !== undefined) {
    latest = { ...latest, period: periodAsOf(latest.period, Number.POSITIVE_INFINITY) };
  }
  return { records, removed: removedAt > grantedAt, latest };
}

/** The permissions that the caller has under every one of its ids. Undefined if it never was a member. */
export function commonPermissions({ records }: Standing): Permissions | undefined {
  let common: Permissions | undefined;
  for (const record of records) {
    const permissions = latestPeriod(record)?.permissions;
    if (permissions === undefined) continue;
    common = common === undefined ? permissions : withinCeiling(common, permissions);
  }
  return common;
}

/** Ids that are removed or changed together: the id, all ids of the caller if it names the caller, and those that joined beside. */
export function idsWith(state: ConversationState, target: string, owners: Owners = NOBODY): string[] {
  const active = [...state.participants.values()].filter(
    (record) => activePeriod(record, state.number) !== undefined,
  );
  const found = new Set<string>();
  for (const record of active) {
    if (record.id === target || (PRINCIPAL_ID.test(target) && principalOf(record, owners) === target)) {
      found.add(record.id);
    }
  }
  for (let size = -1; size !== found.size; ) {
    size = found.size;
    for (const { id, periods } of active) {
      const beside = periods.at(-1)?.beside;
      if (beside !== undefined && found.has(beside)) found.add(id);
    }
  }
  return [...found];
}
