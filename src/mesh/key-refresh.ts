/**
 * ASP: Key Refresh. Keys are pinned to members. A fetch goes to the endpoint that the member registered, never to one
 * that a message names, and only for members, so a stranger can neither steer nor cause it.
 */
import { LRUCache } from "lru-cache";
import type { MeshCore } from "./core.js";
import type { Member } from "./membership/types.js";
import { createPeers } from "./peers.js";
import type { MeshRowWrite } from "./writes.js";

export class KeyRefresh {
  readonly #core: MeshCore;
  /** What each endpoint showed last, and when. */
  readonly #shown = new LRUCache<string, { readonly at: number; readonly key: Promise<string | undefined> }>({
    max: 10_000,
  });

  constructor(core: MeshCore) {
    this.#core = core;
  }

  /** Another key than the pinned one, if the member's endpoint shows one. At most one fetch per agent and pause. */
  async changedKey(member: Member): Promise<string | undefined> {
    const { keyPolicy } = this.#core.parts.options;
    if (keyPolicy === "pin") return undefined;
    const fetched = await this.#fetch(member);
    return fetched === undefined || fetched === member.publicKey ? undefined : fetched;
  }

  /** In the background, when what we know is older than its time to live. A changed key is reported, not taken. */
  refreshIfStale(member: Member): void {
    const { options, report } = this.#core.parts;
    const cached = this.#core.view.keys.get(member.agentId);
    const age = this.#core.now - (cached?.fetchedAt ?? member.joinedAt);
    if (age < options.keyTtl || this.#lately(member) !== undefined) return;
    void this.#fetch(member).then(
      async (fetched) => {
        if (fetched === undefined) return;
        if (fetched === member.publicKey) return this.#remember(member);
        report({
          code: "mesh_key_changed",
          message: `${member.agentId} shows another key at ${member.endpoint} than the one it joined with`,
        });
      },
      (cause: unknown) => report({ code: "mesh_key_fetch", message: `no key of ${member.agentId}`, cause }),
    );
  }

  /** Within the pause what was fetched is as good: a forged message must not use the real one's chance up. */
  #fetch(member: Member): Promise<string | undefined> {
    const lately = this.#lately(member);
    if (lately !== undefined) return lately;
    const key = this.#ask(member);
    this.#shown.set(placeOf(member), { at: this.#core.now, key });
    return key;
  }

  #lately(member: Member): Promise<string | undefined> | undefined {
    const last = this.#shown.get(placeOf(member));
    const { now, parts } = this.#core;
    return last !== undefined && now - last.at < parts.options.keyRefreshPause ? last.key : undefined;
  }

  async #ask({ agentId, endpoint }: Member): Promise<string | undefined> {
    const info = await createPeers(this.#core.parts.http, this.#core.id, () => this.#core.now).info(
      endpoint,
      agentId,
    );
    return "publicKey" in info ? info.publicKey : undefined;
  }

  async #remember({ agentId, endpoint, publicKey }: Member): Promise<void> {
    const key = { agentId, publicKey, fetchedAt: this.#core.now, endpoint };
    const write: MeshRowWrite = { kind: "mesh.key.put", key };
    await this.#core.commit([write], "");
  }
}

/** With the key that is pinned: what was shown before it does not bring an older one back. */
const placeOf = ({ agentId, endpoint, publicKey }: Member): string => `${agentId} ${endpoint} ${publicKey}`;
