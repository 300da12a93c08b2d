import type {
  FederationReads,
  FederationRowWrite,
  Link,
  LinkPut,
  Proposal,
  ProposalPut,
  ProposalRemove,
  Received,
  ReceivedExpire,
  ReceivedPut,
  SwarmPut,
  SwarmRemove,
} from "../../federation/index.js";
import { RowConflictError } from "../../journal/index.js";
import type { Database } from "../database.js";
import { defineTableSet, type WriteContext } from "../table-set.js";

/** Federation's tables: the registry, proposals, received messages, and the peers of each task. */
export const federationTables = defineTableSet<FederationRowWrite>({
  name: "federation",
  migrations: [
    {
      number: 1,
      name: "registry, proposals, received messages, links",
      sql: `
        CREATE TABLE federation_swarms (
          name TEXT PRIMARY KEY,
          entry TEXT NOT NULL
        ) STRICT, WITHOUT ROWID;
        CREATE TABLE federation_proposals (
          name TEXT PRIMARY KEY,
          base_url TEXT NOT NULL,
          source TEXT NOT NULL,
          proposed_at INTEGER NOT NULL
        ) STRICT, WITHOUT ROWID;
        CREATE TABLE federation_received (
          peer TEXT NOT NULL,
          message_id TEXT NOT NULL,
          task_id TEXT NOT NULL,
          runner TEXT NOT NULL,
          at INTEGER NOT NULL,
          PRIMARY KEY (peer, message_id)
        ) STRICT, WITHOUT ROWID;
        CREATE INDEX federation_received_age ON federation_received (at);
        CREATE TABLE federation_links (
          task_id TEXT NOT NULL,
          peer TEXT NOT NULL,
          key TEXT NOT NULL,
          PRIMARY KEY (task_id, peer, key)
        ) STRICT, WITHOUT ROWID;
        CREATE INDEX federation_links_of_task ON federation_links (key);
        CREATE TRIGGER federation_links_end AFTER DELETE ON tasks BEGIN
          DELETE FROM federation_links WHERE key = OLD.key;
        END;
      `,
    },
  ],
  writes: {
    "federation.swarm.put": putSwarm,
    "federation.swarm.remove": removeSwarm,
    "federation.proposal.put": putProposal,
    "federation.proposal.remove": removeProposal,
    "federation.received.put": putReceived,
    "federation.received.expire": expireReceived,
    "federation.link.put": putLink,
  },
});

function putSwarm({ db }: WriteContext): (write: SwarmPut) => void {
  const put = db.prepare("INSERT OR REPLACE INTO federation_swarms (name, entry) VALUES (?, ?)");
  return ({ name, entry }) => {
    put.run(name, entry);
  };
}

function removeSwarm({ db }: WriteContext): (write: SwarmRemove) => void {
  const remove = db.prepare("DELETE FROM federation_swarms WHERE name = ?");
  return ({ name }) => {
    remove.run(name);
  };
}

function putProposal({ db }: WriteContext): (write: ProposalPut) => void {
  const put = db.prepare(`
    INSERT OR IGNORE INTO federation_proposals (name, base_url, source, proposed_at)
    SELECT ?, ?, ?, ? WHERE (SELECT count(*) FROM federation_proposals) < ?
  `);
  return ({ proposal: { name, baseUrl, source, proposedAt }, most }) => {
    put.run(name, baseUrl, source, proposedAt, most);
  };
}

function removeProposal({ db }: WriteContext): (write: ProposalRemove) => void {
  const remove = db.prepare("DELETE FROM federation_proposals WHERE name = ?");
  return ({ name }) => {
    remove.run(name);
  };
}

function putReceived({ db }: WriteContext): (write: ReceivedPut) => void {
  const put = db.prepare(`
    INSERT OR IGNORE INTO federation_received (peer, message_id, task_id, runner, at) VALUES (?, ?, ?, ?, ?)
  `);
  return ({ kind, received: { peer, messageId, taskId, runner, at } }) => {
    if (put.run(peer, messageId, taskId, runner, at).changes > 0) return;
    throw new RowConflictError(kind, `message ${messageId} of swarm '${peer}' was already received`);
  };
}

function expireReceived({ db }: WriteContext): (write: ReceivedExpire) => void {
  const expire = db.prepare("DELETE FROM federation_received WHERE at < ?");
  return ({ before }) => {
    expire.run(before);
  };
}

function putLink({ db }: WriteContext): (write: LinkPut) => void {
  const put = db.prepare("INSERT OR IGNORE INTO federation_links (task_id, peer, key) VALUES (?, ?, ?)");
  return ({ taskId, link }) => {
    put.run(taskId, link.peer, link.key);
  };
}

export function createFederationReads(db: Database, assertOpen: () => void): FederationReads {
  const swarms = db.prepare<[], { name: string; entry: string }>(
    "SELECT name, entry FROM federation_swarms ORDER BY name",
  );
  const proposals = db.prepare<[], Proposal>(
    "SELECT name, base_url AS baseUrl, source, proposed_at AS proposedAt FROM federation_proposals ORDER BY name",
  );
  const received = db.prepare<[string, string], Received>(`
    SELECT peer, message_id AS messageId, task_id AS taskId, runner, at FROM federation_received
    WHERE peer = ? AND message_id = ?
  `);
  const links = db.prepare<[string], Link>("SELECT peer, key FROM federation_links WHERE task_id = ?");
  return {
    async swarms() {
      assertOpen();
      return swarms.all();
    },
    async proposals() {
      assertOpen();
      return proposals.all();
    },
    async received(peer, messageId) {
      assertOpen();
      return received.get(peer, messageId);
    },
    async links(taskId) {
      assertOpen();
      return links.all(taskId);
    },
  };
}
