/** Converts results of MCP servers to text for agents. */

import type { CallToolResult, GetPromptResult, ReadResourceResult } from "@modelcontextprotocol/client";
import { MailroomError } from "../../base/index.js";

type ContentBlock = CallToolResult["content"][number];

/** @throws MailroomError `tool_failed` when the tool reports an error */
export function toolText(result: CallToolResult): string {
  const text = result.content.map(blockText).join("\n");
  const shown =
    text === "" && result.structuredContent !== undefined ? JSON.stringify(result.structuredContent) : text;
  if (result.isError === true)
    throw new MailroomError("tool_failed", shown === "" ? "the tool failed without a message" : shown);
  return shown;
}

export function promptText(result: GetPromptResult): string {
  const messages = result.messages.map(({ role, content }) => `${role}: ${blockText(content)}`);
  return [...(result.description === undefined ? [] : [result.description]), ...messages].join("\n");
}

export function resourceText(result: ReadResourceResult): string {
  return result.contents.map(resourceContents).join("\n");
}

function blockText(block: ContentBlock): string {
  switch (block.type) {
    case "text":
      return block.text;
    case "image":
    case "audio":
      return `(${block.type}, ${block.mimeType}, ${bytesOf(block.data)} bytes)`;
    case "resource":
      return resourceContents(block.resource);
    case "resource_link":
      return `(resource ${block.uri}: ${block.name})`;
    default:
      return JSON.stringify(block satisfies never);
  }
}

function resourceContents(contents: ReadResourceResult["contents"][number]): string {
  if ("text" in contents) return contents.text;
  return `(${contents.mimeType ?? "binary"}, ${bytesOf(contents.blob)} bytes, ${contents.uri})`;
}

function bytesOf(base64: string): number {
  return Math.floor((base64.length * 3) / 4);
}
