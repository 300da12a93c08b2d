/**
 * ASP: Key Refresh. Keys are pinned to members. A key is fetched only for members and only from their registered
 * endpoint, never from one that a message names, so an unauthenticated peer can neither cause nor redirect a fetch.
 */
import { LRUCache } from "lru-cache";
import type { MeshContext } from "../context.js";
import type { Member } from "../membership/types.js";
import { createPeers } from "../send/peers.js";
import type { MeshRowWrite } from "../writes.js";

export class KeyRefresh {
  readonly #context: MeshContext;
  /** The last fetched key of each endpoint, and when. */
  readonly #shown = new LRUCache<string, { readonly at: number; readonly key: Promise<string | undefined> }>({
    max: 10_000,
  });

  constructor(context: MeshContext) {
    this.#context = context;
  }

  /**
   * Returns the key at the member's endpoint if it differs from the pinned one. Fetches at most once per agent and
   * interval.
   */
  async changedKey(member: Member): Promise<string | undefined> {
    const { keyPolicy } = this.#context.parts.options;
    if (keyPolicy === "pin") return undefined;
    const fetched = await this.#fetch(member);
    return fetched === undefined || fetched === member.publicKey ? undefined : fetched;
  }

  /** Refetches a stale key in the background. A changed key is reported, not accepted. */
  refreshIfStale(member: Member): void {
    const { options, report } = this.#context.parts;
    const cached = this.#context.view.keys.get(member.agentId);
    const age = this.#context.now - (cached?.fetchedAt ?? member.joinedAt);
    if (age < options.keyTtl || this.#lately(member) !== undefined) return;
    void this.#fetch(member).then(
      async (fetched) => {
        if (fetched === undefined) return;
        if (fetched === member.publicKey) return this.#remember(member);
        report({
          code: "mesh_key_changed",
          message: `${member.agentId} has another key at ${member.endpoint} than the one it joined with`,
        });
      },
      (cause: unknown) =>
        report({
          code: "mesh_key_fetch",
          message: `the key of ${member.agentId} could not be fetched`,
          cause,
        }),
    );
  }

  /**
   * Within the interval the fetched key is reused, so that a forged message does not use up the fetch of a real one.
   */
  #fetch(member: Member): Promise<string | undefined> {
    const lately = this.#lately(member);
    if (lately !== undefined) return lately;
    const key = this.#ask(member);
    this.#shown.set(placeOf(member), { at: this.#context.now, key });
    return key;
  }

  #lately(member: Member): Promise<string | undefined> | undefined {
    const last = this.#shown.get(placeOf(member));
    const { now, parts } = this.#context;
    return last !== undefined && now - last.at < parts.options.keyRefreshPause ? last.key : undefined;
  }

  async #ask({ agentId, endpoint }: Member): Promise<string | undefined> {
    const info = await createPeers(this.#context.parts.http, this.#context.id, () => this.#context.now).info(
      endpoint,
      agentId,
    );
    return "publicKey" in info ? info.publicKey : undefined;
  }

  async #remember({ agentId, endpoint, publicKey }: Member): Promise<void> {
    const key = { agentId, publicKey, fetchedAt: this.#context.now, endpoint };
    const write: MeshRowWrite = { kind: "mesh.key.put", key };
    await this.#context.commit([write], "");
  }
}

/** Includes the pinned key, so that a key fetched before a change is not used after it. */
const placeOf = ({ agentId, endpoint, publicKey }: Member): string => `${agentId} ${endpoint} ${publicKey}`;
