/**
 * A message as an agent reads it. Subjects, bodies and addresses come from others: what they contain must stay text,
 * or a body could close its element and forge a second message.
 */
import type { MAILAddress, MAILMessage } from "./message.js";
import { isRecord } from "./record.js";

export function renderMailXml(envelope: MAILMessage): string {
  const { sender, subject, body } = envelope.message;
  const recipients = recipientsOf(envelope).map(renderAddress).join("\n");
  return `
<incoming_message>
<id>${escapeText(envelope.id)}</id>
<type>${envelope.msg_type}</type>
<timestamp>${escapeText(envelope.timestamp)}</timestamp>
<from type="${sender.address_type}">${escapeText(sender.address)}</from>
<to>
${recipients}
</to>
<subject>${escapeText(subject)}</subject>
<body>${escapeText(body)}</body>
</incoming_message>
`;
}

/** Data as the body of a message: an element for each key, nested objects as nested elements. */
export function buildBodyXml(data: Readonly<Record<string, unknown>>): string {
  return `<body>\n${renderFields(data)}</body>`;
}

/** Everyone a message is addressed to, whether its type has one recipient or many. */
export function recipientsOf(envelope: MAILMessage): readonly MAILAddress[] {
  switch (envelope.msg_type) {
    case "request":
    case "response":
      return [envelope.message.recipient];
    case "broadcast":
    case "interrupt":
    case "broadcast_complete":
      return envelope.message.recipients;
  }
}

/** For text between tags. */
export function escapeText(text: string): string {
  if (!/[&<>]/.test(text)) return text;
  return text.replaceAll("&", "&amp;").replaceAll("<", "&lt;").replaceAll(">", "&gt;");
}

/** For values between quotes. */
export function escapeAttribute(text: string): string {
  return escapeText(text).replaceAll('"', "&quot;").replaceAll("'", "&apos;");
}

function renderAddress(address: MAILAddress): string {
  return `<address type="${address.address_type}">${escapeText(address.address)}</address>`;
}

/** A key that is no element name is quoted instead, so it cannot open or close anything. */
const ELEMENT_NAME = /^[A-Za-z_][A-Za-z0-9_.-]*$/;

function renderFields(data: Readonly<Record<string, unknown>>): string {
  let text = "";
  for (const [key, value] of Object.entries(data)) {
    if (value === undefined) continue;
    const plain = ELEMENT_NAME.test(key);
    const open = plain ? key : `field name="${escapeAttribute(key)}"`;
    const close = plain ? key : "field";
    text += `<${open}>${renderValue(value)}</${close}>\n`;
  }
  return text;
}

function renderValue(value: unknown): string {
  if (typeof value === "string") return escapeText(value);
  if (isRecord(value)) return `\n${renderFields(value)}`;
  return escapeText(JSON.stringify(value) ?? String(value));
}
