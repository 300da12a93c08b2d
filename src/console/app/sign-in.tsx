/** Over the page, so that what was there stays. */
import { useEffect, useState } from "preact/hooks";
import { ApiError, BASE, ended, linkRefused, openSession, ROOT, request } from "../data/api.js";
import { Icon } from "../ui/icon.js";
import { Command, toast } from "../ui/kit.js";
import { Text } from "../ui/text.js";

interface ServerFacts {
  readonly swarm?: { readonly name: string } | string;
  readonly status: string;
  readonly server?: { readonly version?: string | null };
}

export function SignIn() {
  const [token, setToken] = useState("");
  const [busy, setBusy] = useState(false);
  const [problem, setProblem] = useState("");
  const [facts, setFacts] = useState<ServerFacts | undefined>(undefined);
  useEffect(() => {
    request<ServerFacts>("").then(setFacts, () => {});
  }, []);
  const submit = async () => {
    if (token.trim() === "" || busy) return;
    setBusy(true);
    setProblem("");
    try {
      await openSession({ token: token.trim() });
      setToken("");
      toast("Signed in.", "good");
    } catch (error) {
      setProblem(
        error instanceof ApiError && error.status === 401
          ? "This token is not valid, or it was revoked."
          : error instanceof Error
            ? error.message
            : String(error),
      );
    }
    setBusy(false);
  };
  const swarm = typeof facts?.swarm === "string" ? facts.swarm : facts?.swarm?.name;
  return (
    <div class="sign-in" role="dialog" aria-modal="true" aria-label="Sign in">
      <form
        class="dialog"
        onSubmit={(event) => {
          event.preventDefault();
          void submit();
        }}
      >
        <div class="inside">
          <div class="sign-in-head">
            <Icon name="mail" size={20} />
            <h1>Mailroom</h1>
            {swarm !== undefined && (
              <span class="dim">
                swarm <Text>{swarm}</Text> at {ROOT.host}
              </span>
            )}
            <span class="grow" />
            {facts !== undefined && <span class="dim">{facts.server?.version ?? ""}</span>}
          </div>
          {linkRefused.value && (
            <div class="notice wait" role="alert">
              This link was used already, or is older than a minute. Sign in with a token, or make a new link.
            </div>
          )}
          {ended.value && (
            <div class="notice wait" role="alert">
              Your session ended or its token was revoked. Sign in to go on where you were.
            </div>
          )}
          <label class="labelled">
            <span>Token</span>
            <span class="token-row">
              <input
                class="field mono"
                type="password"
                name="token"
                autocomplete="off"
                spellcheck={false}
                placeholder="mr_…"
                value={token}
                ref={(element) => {
                  if (element !== null && document.activeElement === document.body) element.focus();
                }}
                onInput={(event) => setToken(event.currentTarget.value)}
              />
              <button type="submit" class="button main" disabled={busy}>
                {busy ? "Signing in" : "Sign in"}
              </button>
            </span>
          </label>
          {problem !== "" && (
            <div class="notice bad" role="alert">
              <Text>{problem}</Text>
            </div>
          )}
          <p class="dim">Kept in this browser for a limited time, sealed: no script can read it.</p>
          <div class="labelled">
            <span>On the server’s machine, a link that signs in once</span>
            <Command text="mailroom console" />
          </div>
          <div class="labelled">
            <span>No token yet</span>
            <Command text="mailroom token create --role user --id ann" />
          </div>
          <p class="dim unseen">{BASE.pathname}</p>
        </div>
      </form>
    </div>
  );
}
