/** What agents keep beyond a task: a key–value memory per instance that survives restarts (decisions H3). */
import { z } from "zod";
import type { Action, ActionContext } from "../engine/agent.js";
import type { InstanceMemory } from "../engine/memory.js";
import { defineAction } from "./define.js";

export type MemoryActionName = "remember" | "recall" | "forget" | "list_memories";

export class MemoryActionError extends Error {
  override readonly name = "MemoryActionError";
  readonly code: "no_memory" | "unknown_key";
  constructor(code: MemoryActionError["code"], message: string) {
    super(message);
    this.code = code;
  }
}

const key = z
  .string()
  .regex(/^[^\p{Cc}]{1,256}$/u, "must be 1 to 256 characters without control characters")
  .describe("The name under which it is kept");

const PAGE = 100;

export function memoryActions(): Readonly<Record<MemoryActionName, Action>> {
  return {
    remember: defineAction({
      name: "remember",
      description: "Keeps a text under a key for later tasks of the same user. What was there is replaced.",
      parameters: z.strictObject({ key, value: z.string().max(65_536).describe("The text") }),
      idempotent: true,
      run: async (args, context) => {
        await memoryIn(context).set(args.key, args.value);
        return `kept under '${args.key}'`;
      },
    }),
    recall: defineAction({
      name: "recall",
      description: "Returns the text that is kept under a key.",
      parameters: z.strictObject({ key }),
      idempotent: true,
      run: async (args, context) => {
        const item = await memoryIn(context).get(args.key);
        if (item !== undefined) return item.value;
        throw new MemoryActionError("unknown_key", `nothing is kept under '${args.key}'`);
      },
    }),
    forget: defineAction({
      name: "forget",
      description: "Removes what is kept under a key.",
      parameters: z.strictObject({ key }),
      idempotent: true,
      run: async (args, context) =>
        (await memoryIn(context).delete(args.key))
          ? `forgot '${args.key}'`
          : `nothing was kept under '${args.key}'`,
    }),
    list_memories: defineAction({
      name: "list_memories",
      description: `Lists the keys under which something is kept, ${PAGE} at a time.`,
      parameters: z.strictObject({
        prefix: z.string().max(256).optional().describe("Only keys that begin with this"),
        after: z.string().max(256).optional().describe("Only keys after this one, to go on with a long list"),
      }),
      idempotent: true,
      run: async ({ prefix, after }, context) => {
        const items = await memoryIn(context).list({
          limit: PAGE,
          ...(prefix !== undefined && { prefix }),
          ...(after !== undefined && { after }),
        });
        return items.length === 0 ? "nothing is kept" : items.map((item) => item.key).join("\n");
      },
    }),
  };
}

function memoryIn({ memory }: ActionContext): InstanceMemory {
  if (memory !== undefined) return memory;
  throw new MemoryActionError("no_memory", "this mailroom has no memory: its store offers none");
}
