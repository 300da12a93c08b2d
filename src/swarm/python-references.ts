/**
 * Maps references of the reference implementation's swarm files to built-in agents and actions. Python cannot run in
 * this process; files that use only mapped references load unchanged.
 */

/** References without their `python::` prefix. */
export const PYTHON_AGENTS: Readonly<Record<string, string>> = {
  "mail.factories.base:LiteLLMAgentFunction": "mail:agent",
  "mail.factories.base:base_agent_factory": "mail:agent",
  "mail.factories.action:LiteLLMActionAgentFunction": "mail:action-agent",
  "mail.factories.action:action_agent_factory": "mail:action-agent",
  "mail.factories.supervisor:LiteLLMSupervisorFunction": "mail:supervisor",
  "mail.factories.supervisor:supervisor_factory": "mail:supervisor",
  "mail.stdlib.openai:OpenAIChatCompletionsAgentFunction": "mail:agent",
  "mail.stdlib.openai:OpenAIChatCompletionsSupervisorFunction": "mail:supervisor",
  "mail.stdlib.openai:OpenAIResponsesAgentFunction": "mail:agent",
  "mail.stdlib.openai:OpenAIResponsesSupervisorFunction": "mail:supervisor",
  "mail.examples.supervisor.agent:supervisor_factory": "mail:example/supervisor",
  "mail.examples.weather_dummy.agent:LiteLLMWeatherFunction": "mail:example/weather",
  "mail.examples.weather_dummy.agent:factory_weather_dummy": "mail:example/weather",
  "mail.examples.math_dummy.agent:LiteLLMMathFunction": "mail:example/math",
  "mail.examples.math_dummy.agent:factory_math_dummy": "mail:example/math",
  "mail.examples.consultant_dummy.agent:LiteLLMConsultantFunction": "mail:example/consultant",
  "mail.examples.consultant_dummy.agent:factory_consultant_dummy": "mail:example/consultant",
  "mail.examples.analyst_dummy.agent:LiteLLMAnalystFunction": "mail:example/analyst",
  "mail.examples.analyst_dummy.agent:factory_analyst_dummy": "mail:example/analyst",
};

export const PYTHON_ACTIONS: Readonly<Record<string, string>> = {
  "mail.examples.weather_dummy.actions:get_weather_forecast": "mail:example/get_weather_forecast",
  "mail.examples.weather_dummy:action_get_weather_forecast": "mail:example/get_weather_forecast",
  "mail.examples.math_dummy.actions:calculate_expression": "mail:example/calculate_expression",
  "mail.examples.math_dummy:action_calculate_expression": "mail:example/calculate_expression",
  ...stdlib("fs", ["read_file", "write_file", "delete_file", "create_directory", "read_directory"]),
  ...stdlib("http", [
    "http_get",
    "http_post",
    "http_put",
    "http_patch",
    "http_delete",
    "http_head",
    "http_options",
  ]),
  ...stdlib("interswarm", ["ping_swarm", "get_swarm_health", "get_swarm_registry"]),
  ...stdlib("mcp", [
    "mcp_ping",
    "mcp_list_tools",
    "mcp_list_prompts",
    "mcp_list_resources",
    "mcp_call_tool",
    "mcp_get_prompt",
    "mcp_read_resource",
  ]),
};

/** Prompts of the reference's examples, with our corresponding examples. */
export const PYTHON_PROMPTS: Readonly<Record<string, string>> = {
  "mail.examples.supervisor.prompts:SYSPROMPT": "supervisor",
  "mail.examples.weather_dummy.prompts:SYSPROMPT": "weather",
  "mail.examples.math_dummy.prompts:SYSPROMPT": "math",
  "mail.examples.consultant_dummy.prompts:SYSPROMPT": "consultant",
  "mail.examples.analyst_dummy.prompts:SYSPROMPT": "analyst",
};

function stdlib(group: string, actions: readonly string[]): Record<string, string> {
  return Object.fromEntries(
    actions.flatMap((action) => [
      [`mail.stdlib.${group}:${action}`, `mail:${group}/${action}`],
      [`mail.stdlib.${group}.actions:${action}`, `mail:${group}/${action}`],
    ]),
  );
}

/**
 * Returns the dotted reference in `python::pkg.module:attr` or plain `mail.module:attr`, or `undefined` for other
 * texts.
 */
export function pythonName(reference: string): string | undefined {
  if (reference.startsWith("python::")) return reference.slice("python::".length).replace(/^src\./, "");
  return /^(?:src\.)?mail\.[\w.]+:[\w.]+$/.test(reference) ? reference.replace(/^src\./, "") : undefined;
}
