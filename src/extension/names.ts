import { MailroomError } from "../base/index.js";

/** Names after the `@` of an address. One table per server; each extension sees it under its own name. */
export interface NameTable {
  /** The extension that uses the name, or `swarm` for the local swarm. */
  ownerOf(name: string): string | undefined;
  /** Whether another extension or the local swarm uses the name. */
  isTaken(name: string): boolean;
  /** @throws MailroomError `name_taken`, naming both owners */
  claim(name: string): void;
  release(name: string): void;
}

export class NameRegistry {
  readonly #claimed = new Map<string, string>();
  /** Carriers whose names come and go while the server runs. */
  readonly #carriers = new Map<string, (name: string) => boolean>();

  constructor(swarm: string) {
    this.#claimed.set(swarm, "swarm");
  }

  /** Names that a carrier owns are taken as long as it owns them. */
  addCarrier(owner: string, owns: (name: string) => boolean): void {
    this.#carriers.set(owner, owns);
  }

  for(owner: string): NameTable {
    return {
      ownerOf: (name) => this.#ownerOf(name),
      isTaken: (name) => this.#ownerOf(name, owner) !== undefined,
      claim: (name) => {
        const other = this.#ownerOf(name, owner);
        if (other !== undefined) {
          throw new MailroomError(
            "name_taken",
            `the name '${name}' is used by ${other}: ${owner} cannot use it`,
          );
        }
        this.#claimed.set(name, owner);
      },
      release: (name) => {
        if (this.#claimed.get(name) === owner) this.#claimed.delete(name);
      },
    };
  }

  #ownerOf(name: string, except?: string): string | undefined {
    const claimed = this.#claimed.get(name);
    if (claimed !== undefined && claimed !== except) return claimed;
    for (const [owner, owns] of this.#carriers) if (owner !== except && owns(name)) return owner;
    return undefined;
  }
}
