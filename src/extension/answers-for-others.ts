/**
 * What a caller may answer in tasks of other owners, for doors without routes for it: an approver finds the
 * waiting task and answers it through any protocol.
 */
import { hasCode } from "../base/index.js";
import { type Actor, type PostReceipt, type RowsFor, readDecisions } from "../engine/index.js";
import type { Approval, ApprovalPage, Mailroom, OthersPage } from "../library/index.js";
import type { ServerFacts } from "./extension.js";

/** A user or an admin. */
export type Answerer = Pick<Actor, "id"> & { readonly role: string };

/** Tasks in a part of a list. */
const LISTED = 200;

/** The caller as an actor on tasks, with the rights that the settings give to admins. */
export function actorOf({ role, id }: Answerer, server: Pick<ServerFacts, "adminsActForOwners">): Actor {
  if (role !== "admin") return { role: "user", id };
  return { role, id, ...(server.adminsActForOwners && { actsForOwners: true }) };
}

export class AnswersForOthers {
  readonly #mailroom: Mailroom;
  readonly #server: Pick<ServerFacts, "adminsActForOwners">;

  constructor(mailroom: Mailroom, server: Pick<ServerFacts, "adminsActForOwners">) {
    this.#mailroom = mailroom;
    this.#server = server;
  }

  /** Tasks that the caller was named for and that wait for a person, newest first by default. */
  list(caller: Answerer, page: Partial<OthersPage> = {}): Promise<ApprovalPage> {
    return this.#mailroom.approvals.listOthers(this.#actor(caller), { limit: LISTED, ...page });
  }

  /** A task of another owner that waits for the caller, by its key. */
  async find(caller: Answerer, key: string): Promise<Approval | undefined> {
    try {
      const approval = await this.#mailroom.approvals.get(this.#actor(caller), key);
      return approval.right === "owner" ? undefined : approval;
    } catch (error) {
      if (hasCode(error, "unknown_task")) return undefined;
      throw error;
    }
  }

  /**
   * Decides calls that wait for approval.
   * @throws MailroomError `bad_request` if `decisions` are malformed, `unknown_task` also when the caller may not answer
   */
  decide(caller: Answerer, key: string, decisions: unknown, rows?: RowsFor): Promise<PostReceipt> {
    return this.#mailroom.approvals.decide(this.#actor(caller), key, readDecisions(decisions), rows);
  }

  /** Supplies the results of breakpoint calls. @throws MailroomError `approval_needed` if calls wait for approval */
  answer(
    caller: Answerer,
    key: string,
    given: string | readonly { readonly callId: string; readonly content: string }[],
    rows?: RowsFor,
  ): Promise<PostReceipt> {
    const results = typeof given === "string" ? { content: given } : given;
    return this.#mailroom.approvals.answer(this.#actor(caller), key, { results }, rows);
  }

  /** An admin cancels any task. @throws MailroomError `unknown_task` for everybody else */
  cancel(caller: Answerer, key: string): Promise<void> {
    return this.#mailroom.approvals.cancel(this.#actor(caller), key);
  }

  #actor(caller: Answerer): Actor {
    return actorOf(caller, this.#server);
  }
}
