/** Who I am, what that allows, and the tokens of the server. */
import { useState } from "preact/hooks";
import { caller, callerName, closeSession, isAdmin, request } from "../../data/api.js";
import type { TokenInfo } from "../../data/shapes.js";
import { useRequest } from "../../data/use.js";
import { dateAndTime } from "../../model/words.js";
import { useTop } from "../../nav/title.js";
import { Command, Dialog, Panel, toast } from "../../ui/kit.js";
import { Table } from "../../ui/table.js";
import { Text } from "../../ui/text.js";
import { Page } from "../parts/page.js";
import { SearchButton } from "../parts/search-button.js";

const ALLOWS: Readonly<Record<string, string>> = {
  admin:
    "You see every task, and may cancel every task. You see the swarm’s definition and figures, other swarms, the mesh and the tokens. You write to your own tasks, and answer those and the ones that you were named for.",
  user: "You see your own tasks, and may write to, answer and cancel them. You also answer tasks that you were named for, and see which other swarms are known.",
};

export default function Access() {
  const who = caller.value;
  const admin = isAdmin();
  const tokens = useRequest<{ tokens: TokenInfo[] }>(admin ? "admin/tokens" : undefined);
  const [revoking, setRevoking] = useState<TokenInfo | undefined>(undefined);
  useTop("Access", () => ({ left: <h1>Access</h1>, right: <SearchButton /> }), []);
  return (
    <Page label="Access">
      <Panel title="You" note={who?.dev === true ? "development mode" : undefined}>
        <div class="inside stack">
          <p>
            You are{" "}
            <b>
              <Text>{callerName()}</Text>
            </b>
            . {ALLOWS[who?.role ?? ""] ?? ""}
          </p>
          {who?.dev === true ? (
            <p class="dim">
              This server runs in development mode: it accepts every name, and only from this machine.
            </p>
          ) : (
            <div class="row-of">
              <span class="dim">
                {who?.expires === undefined
                  ? ""
                  : `Signed in until ${dateAndTime(new Date(who.expires).getTime())}.`}
              </span>
              <span class="grow" />
              <button type="button" class="button" onClick={() => void closeSession()}>
                Sign out
              </button>
            </div>
          )}
        </div>
      </Panel>
      {admin && (
        <Panel
          title="Tokens"
          note={
            tokens.value === undefined
              ? undefined
              : `${tokens.value.tokens.filter(({ revoked_at }) => revoked_at === null).length} valid`
          }
        >
          {(tokens.value?.tokens.length ?? 0) === 0 ? (
            <p class="inside dim">
              {tokens.error === undefined ? "There are no tokens." : <Text>{tokens.error.message}</Text>}
            </p>
          ) : (
            <Table label="Tokens" columns={["For", "Label", "Token", "Made", "Last used", "State", ""]}>
              {tokens.value?.tokens.map((token) => (
                <tr key={token.token_id}>
                  <td>
                    <b>
                      <Text>{`${token.role}:${token.id}`}</Text>
                    </b>
                  </td>
                  <td>
                    <Text>{token.label ?? ""}</Text>
                  </td>
                  <td class="mono">
                    <Text>{token.token_id}</Text>
                  </td>
                  <td class="dim nowrap">{dateAndTime(token.created_at)}</td>
                  <td class="dim nowrap">
                    {token.last_used_at === null ? "never" : dateAndTime(token.last_used_at)}
                  </td>
                  <td class={token.revoked_at === null ? "good" : "dim"}>
                    {token.revoked_at === null
                      ? token.current
                        ? "valid, yours"
                        : "valid"
                      : `revoked ${dateAndTime(token.revoked_at)}`}
                  </td>
                  <td class="right">
                    {token.revoked_at === null && (
                      <button type="button" class="button small danger" onClick={() => setRevoking(token)}>
                        Revoke
                      </button>
                    )}
                  </td>
                </tr>
              ))}
            </Table>
          )}
        </Panel>
      )}
      {admin && (
        <Panel title="Create a token">
          <div class="inside stack">
            <p class="dim">Tokens are created on the server’s machine only, never over the network.</p>
            <Command text="mailroom token create --role user --id ann" />
          </div>
        </Panel>
      )}
      {revoking !== undefined && (
        <Revoke token={revoking} onClose={() => setRevoking(undefined)} onDone={tokens.again} />
      )}
    </Page>
  );
}

function Revoke({
  token,
  onClose,
  onDone,
}: {
  readonly token: TokenInfo;
  readonly onClose: () => void;
  readonly onDone: () => void;
}) {
  const [typed, setTyped] = useState("");
  const sure = !token.current || typed === token.token_id;
  const revoke = async () => {
    try {
      await request(`admin/tokens/${encodeURIComponent(token.token_id)}/revoke`, { method: "POST" });
      toast("Revoked.", "good");
    } catch (error) {
      toast(error instanceof Error ? error.message : String(error), "bad");
    }
    onClose();
    onDone();
  };
  return (
    <Dialog title={`Revoke the token of ${token.role}:${token.id}?`} onClose={onClose}>
      <p>The server refuses it from now on, and its sessions end at once.</p>
      {token.current && (
        <label class="labelled">
          <span>This is the token of your own session. Type {token.token_id} to confirm.</span>
          <input
            class="field mono"
            data-first
            value={typed}
            onInput={(event) => setTyped(event.currentTarget.value.trim())}
          />
        </label>
      )}
      <footer>
        <span class="grow" />
        <button type="button" class="button" onClick={onClose}>
          Keep it
        </button>
        <button type="button" class="button danger" disabled={!sure} onClick={() => void revoke()}>
          Revoke
        </button>
      </footer>
    </Dialog>
  );
}
