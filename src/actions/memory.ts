/** Agents' memory beyond a task: a durable key–value store per instance (decision H3). */

import { z } from "zod";
import { MailroomError } from "../base/index.js";
import type { Action, ActionContext, InstanceMemory } from "../engine/index.js";
import { defineAction } from "./define.js";

export type MemoryActionName = "remember" | "recall" | "forget" | "list_memories";

const key = z
  .string()
  .regex(/^[^\p{Cc}]{1,256}$/u, "must be 1 to 256 characters without control characters")
  .describe("The key of the text");

const PAGE = 100;

/**
 * Makes actions over a key-value memory that every instance has for itself. It outlives tasks.
 * @example
 * const { remember, recall } = memoryActions();
 */
export function memoryActions(): Readonly<Record<MemoryActionName, Action>> {
  return {
    remember: defineAction({
      name: "remember",
      description:
        "Stores a text under a key for later tasks of the same user. An existing text is replaced.",
      parameters: z.strictObject({ key, value: z.string().max(65_536).describe("The text") }),
      idempotent: true,
      parallel: false,
      run: async (args, context) => {
        await memoryIn(context).set(args.key, args.value);
        return `stored under '${args.key}'`;
      },
    }),
    recall: defineAction({
      name: "recall",
      description: "Returns the text stored under a key.",
      parameters: z.strictObject({ key }),
      idempotent: true,
      run: async (args, context) => {
        const item = await memoryIn(context).get(args.key);
        if (item !== undefined) return item.value;
        throw new MailroomError("unknown_key", `nothing is stored under '${args.key}'`);
      },
    }),
    forget: defineAction({
      name: "forget",
      description: "Deletes the text stored under a key.",
      parameters: z.strictObject({ key }),
      idempotent: true,
      parallel: false,
      run: async (args, context) =>
        (await memoryIn(context).delete(args.key))
          ? `forgot '${args.key}'`
          : `nothing was stored under '${args.key}'`,
    }),
    list_memories: defineAction({
      name: "list_memories",
      description: `Lists the stored keys, ${PAGE} at a time.`,
      parameters: z.strictObject({
        prefix: z.string().max(256).optional().describe("Only keys with this prefix"),
        after: z.string().max(256).optional().describe("Only keys after this one, to continue a long list"),
      }),
      idempotent: true,
      run: async ({ prefix, after }, context) => {
        const items = await memoryIn(context).list({
          limit: PAGE,
          ...(prefix !== undefined && { prefix }),
          ...(after !== undefined && { after }),
        });
        return items.length === 0 ? "nothing is stored" : items.map((item) => item.key).join("\n");
      },
    }),
  };
}

function memoryIn({ memory }: ActionContext): InstanceMemory {
  if (memory !== undefined) return memory;
  throw new MailroomError("no_memory", "this mailroom's store has no key-value memory");
}
