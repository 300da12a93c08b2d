import { createParser } from "eventsource-parser";

/** Posts and reads the stream of events to its end. */
export async function readSseEvents(
  url: string,
  token: string,
  body: unknown,
): Promise<{ event: string; data: unknown }[]> {
  const answer = await fetch(url, {
    method: "POST",
    headers: { authorization: `Bearer ${token}`, "content-type": "application/json" },
    body: JSON.stringify(body),
  });
  const events: { event: string; data: unknown }[] = [];
  const parser = createParser({
    onEvent: ({ event = "message", data }) => events.push({ event, data: JSON.parse(data) }),
  });
  const decoder = new TextDecoder();
  if (answer.body !== null) {
    for await (const part of answer.body) parser.feed(decoder.decode(part, { stream: true }));
  }
  return events;
}
