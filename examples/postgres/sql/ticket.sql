-- P2: a new ticket, in the transaction that adds its task. A press that was seen
-- before finds its ticket.
INSERT INTO public.tickets AS t (press, question) VALUES ($1, $2)
ON CONFLICT (press) DO UPDATE SET press = t.press RETURNING id
