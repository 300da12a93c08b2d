/** What `swarms.json` refers to: an agent and the function of an action. */

export const clerk = {
  run(mail) {
    if (mail.result) mail.reply(mail.result.content);
    else mail.act("opening_hours", { day: mail.body });
  },
};

export function openingHours({ day }) {
  if (/sunday/i.test(day)) return "closed";
  return /saturday/i.test(day) ? "10 to 16" : "9 to 18";
}
