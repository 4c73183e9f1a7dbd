package demo

import (
	"math"
	"slices"
)

// ranked is the text with what is known about its words.
type ranked struct {
	sentences []sentence
	rarity    map[string]float64 // of a word, by how few sentences have it
	share     map[string]float64 // of a word, of all words of the text
	average   float64            // words a sentence
}

func rank(sentences []sentence) *ranked {
	r := &ranked{sentences: sentences, rarity: map[string]float64{}, share: map[string]float64{}}
	total := 0
	for _, s := range sentences {
		total += len(s.words)
		seen := map[string]bool{}
		for _, w := range s.words {
			r.share[w]++
			if !seen[w] {
				seen[w] = true
				r.rarity[w]++
			}
		}
	}
	for w, n := range r.rarity {
		r.rarity[w] = math.Log(1 + float64(len(sentences))/n)
		r.share[w] /= float64(total)
	}
	r.average = math.Max(1, float64(total)/math.Max(1, float64(len(sentences))))
	return r
}

// answers returns the sentences that answer the question best, in their order,
// and false when none shares anything with it.
func (r *ranked) answers(question string, w wish) ([]sentence, bool) {
	all, terms := set(words(question)), set(words(w.without(question)))
	kindOnly := !r.has(terms)
	if kindOnly {
		terms = all // "risks" may still be a heading
	}
	scores := make([]float64, len(r.sentences))
	heading := 0.0
	for i, s := range r.sentences {
		match := r.match(s, terms)
		if s.heading {
			heading = match
			scores[i] = match / 4 // quoted alone, a heading tells little
			continue
		}
		score, hits := match+heading/2, float64(w.hits(s))
		if kindOnly {
			// "When?", "What was decided?": the kind of sentence is all there is to go by.
			score = hits + 0.2*match + heading/2
			if s.scrap() {
				score /= 3
			}
		} else if score > 0 {
			score *= 1 + 0.5*hits
		}
		if s.asks {
			score /= 3 // a question in the text seldom answers one
		}
		scores[i] = score * r.prior(i)
	}
	limit := 3
	if w.many {
		limit = 5
	}
	return r.best(scores, limit, 0.4)
}

// has reports whether any of the terms is in the text.
func (r *ranked) has(terms map[string]bool) bool {
	for t := range terms {
		if r.rarity[t] > 0 {
			return true
		}
	}
	return false
}

// match is the weight of the question's words in a sentence: rare words weigh
// more, a repetition little, a long sentence has to offer more, and one that has
// all the words is worth most.
func (r *ranked) match(s sentence, terms map[string]bool) float64 {
	counts := map[string]float64{}
	for _, w := range s.words {
		if terms[w] {
			counts[w]++
		}
	}
	if len(counts) == 0 {
		return 0
	}
	// Added in the order of the sentence: floats differ by the order of a sum, and
	// the same request gets the same answer.
	score := 0.0
	for _, w := range s.words {
		if n := counts[w]; n > 0 {
			score += r.rarity[w] * (1 + math.Log(n)) / n
		}
	}
	norm := math.Sqrt(math.Max(0.5, float64(len(s.words))/r.average))
	return score / norm * (0.5 + float64(len(counts))/float64(len(terms)))
}

// prior prefers what comes early, by little.
func (r *ranked) prior(i int) float64 {
	return 1 + 0.15*(1-float64(i)/float64(len(r.sentences)))
}

// points returns the sentences that stand best for the whole text. Each choice
// makes its own words count less, so that the next says something else.
func (r *ranked) points(limit int) []sentence {
	weight := map[string]float64{}
	for w, share := range r.share {
		weight[w] = share
	}
	signs := wish{cues: []cue{decisionCue, numberCue, dateCue}}
	prefer := make([]float64, len(r.sentences))
	for i, s := range r.sentences {
		prefer[i] = (1 + 0.25*float64(signs.hits(s))) * (1 + 0.5*(r.prior(i)-1)/0.15)
		if s.asks || s.scrap() {
			prefer[i] /= 3
		}
	}
	chosen := map[int]bool{}
	for len(chosen) < limit {
		best, top := -1, 0.0
		for i, s := range r.sentences {
			if chosen[i] || s.heading || len(s.words) < 2 {
				continue
			}
			score := 0.0
			for _, w := range s.words {
				score += weight[w]
			}
			score = score / math.Max(float64(len(s.words)), r.average/2) * prefer[i]
			if score > top {
				best, top = i, score
			}
		}
		if best < 0 {
			break
		}
		chosen[best] = true
		for _, w := range r.sentences[best].words {
			weight[w] *= weight[w]
		}
	}
	return r.inOrder(chosen)
}

// best takes the highest scores, down to a part of the top one.
func (r *ranked) best(scores []float64, limit int, part float64) ([]sentence, bool) {
	order := make([]int, 0, len(scores))
	for i, score := range scores {
		if score > 0 {
			order = append(order, i)
		}
	}
	slices.SortStableFunc(order, func(a, b int) int {
		switch {
		case scores[a] > scores[b]:
			return -1
		case scores[a] < scores[b]:
			return 1
		}
		return a - b
	})
	chosen, told := map[int]bool{}, map[string]bool{}
	for _, i := range order {
		if len(chosen) == limit || scores[i] < part*scores[order[0]] {
			break
		}
		if text := quote(r.sentences[i].text); !told[text] {
			told[text] = true
			chosen[i] = true
		}
	}
	return r.inOrder(chosen), len(chosen) > 0
}

func (r *ranked) inOrder(chosen map[int]bool) []sentence {
	var out []sentence
	for i, s := range r.sentences {
		if chosen[i] {
			out = append(out, s)
		}
	}
	return out
}
