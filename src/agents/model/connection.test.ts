import { describe, expect, it } from "vitest";
import { hasCredentials, planConnection, type Routing } from "./connection.js";

const routing = (changes: Partial<Routing>): Routing => ({
  llm: "openai/gpt",
  use_proxy: null,
  toolFormat: "responses",
  ...changes,
});

describe("the connection to a model", () => {
  it.each([
    ["openai/gpt", "openai-responses", "gpt", "OPENAI_API_KEY"],
    ["anthropic/claude", "anthropic", "claude", "ANTHROPIC_API_KEY"],
    ["google/gemini-pro", "google", "gemini-pro", "GOOGLE_GENERATIVE_AI_API_KEY"],
    ["gemini/gemini-pro", "google", "gemini-pro", "GOOGLE_GENERATIVE_AI_API_KEY"],
  ])("%s", (llm, format, model, variable) => {
    const plan = planConnection(routing({ llm }), { [variable]: "key" });
    expect(plan).toMatchObject({ format, model, credentials: { kind: "key", variable, key: "key" } });
    expect(hasCredentials(planConnection(routing({ llm }), {}))).toBe(false);
  });

  it("follows the tool format where a provider has two", () => {
    expect(planConnection(routing({ toolFormat: "completions" }), {}).format).toBe("openai-chat");
  });

  it("finds Ollama on this machine and requires no key for it", () => {
    const plan = planConnection(routing({ llm: "ollama/llama3" }), {});
    expect(plan).toMatchObject({ format: "compatible-chat", baseUrl: "http://127.0.0.1:11434/v1" });
    expect(hasCredentials(plan)).toBe(true);
  });

  it("sends a provider's key to other URLs only if the swarm file names the key", () => {
    const env = { OPENAI_API_KEY: "secret", OTHER: "other" };
    const elsewhere = routing({ base_url: "https://models.example.com/v1" });
    expect(planConnection(elsewhere, env).credentials).toEqual({ kind: "none" });
    const named = planConnection({ ...elsewhere, api_key_env: "OTHER" }, env);
    expect(named.credentials).toMatchObject({ variable: "OTHER", key: "other" });
  });

  it("uses the proxy by default when there is one, always with use_proxy true, never with use_proxy false", () => {
    const env = { LITELLM_PROXY_API_BASE: "https://proxy.example.com" };
    const through = {
      baseUrl: "https://proxy.example.com",
      model: "openai/gpt",
      credentials: { kind: "caller" },
    };
    expect(planConnection(routing({}), env)).toMatchObject(through);
    expect(planConnection(routing({ llm: "litellm_proxy/openai/gpt" }), env)).toMatchObject(through);
    expect(planConnection(routing({ use_proxy: false }), env)).toMatchObject({ model: "gpt" });
    expect(() => planConnection(routing({ use_proxy: true }), {})).toThrow(/LITELLM_PROXY_API_BASE/);
  });

  it("sends callers' tokens only to the operator's proxy", () => {
    const env = { LITELLM_PROXY_API_BASE: "https://proxy.example.com", LITELLM_PROXY_API_KEY: "secret" };
    const elsewhere = { base_url: "https://models.example.com/v1" };
    expect(planConnection(routing(elsewhere), env).credentials).toEqual({ kind: "none" });
    for (const asking of [{ use_proxy: true }, { llm: "litellm_proxy/openai/gpt" }]) {
      expect(() => planConnection(routing({ ...elsewhere, ...asking }), env)).toThrow(
        expect.objectContaining({ details: { param: "base_url" } }),
      );
    }
  });

  it.each(["gpt", "/gpt", "openai/", "somebody/model"])("explains why '%s' is invalid", (llm) => {
    expect(() => planConnection(routing({ llm }), {})).toThrow(
      expect.objectContaining({ code: "bad_model" }),
    );
  });
});
