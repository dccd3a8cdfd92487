// Queue of questions, of which one at a time is sent. Of the questions about the displayed state only the latest is kept.
// Background questions (`aside`) wait for all others, and are dropped when the state changes.
function asker(model, waits) {
  let flying = null, latest = null, counted = 0;
  const must = [], aside = [];
  function pump() {
    if (flying) return;
    const next = must.shift() || latest || aside.shift();
    if (!next) return;
    if (next === latest) latest = null;
    flying = { ...next, id: (counted += 1) };
    model.send({ id: flying.id, question: flying.question });
  }
  model.on("msg:custom", (content) => {
    if (!flying || content.id !== flying.id) return;
    const { done } = flying;
    flying = null;
    done(content.reply);
    pump();
    waits((flying ? 1 : 0) + must.length + aside.length + (latest ? 1 : 0));
  });
  return {
    state(question, done) { latest = { question, done }; aside.length = 0; pump(); },
    must(question, done) { must.push({ question, done }); pump(); },
    aside(question, done) { aside.push({ question: { ...question, aside: true }, done }); pump(); },
    forget() { latest = null; aside.length = 0; },
  };
}
