package elastic_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"tributary/driver"
	"tributary/driver/collective/elastic"
)

// registered returns registrations from words such as a, a@r (in rack r), a@r+4 (it reaches a card of 4 ports)
// and a>7 (it needs generation 7). The incarnation of a is a-.
func registered(words string) (all []elastic.Registration) {
	for _, w := range strings.Fields(words) {
		var r elastic.Registration
		w, needs, _ := strings.Cut(w, ">")
		fmt.Sscan(needs, &r.Needs)
		w, ports, reaches := strings.Cut(w, "+")
		if reaches {
			r.Card = &driver.Info{}
			fmt.Sscan(ports, &r.Card.Ports)
		}
		r.ID, r.Rack, _ = strings.Cut(w, "@")
		r.Incarnation = r.ID + "-"
		if id, other, ok := strings.Cut(r.ID, "'"); ok {
			r.ID, r.Incarnation = id, id+other+"'"
		}
		all = append(all, r)
	}
	return all
}

// text returns a plan as words: generation, members, cards and losses.
func text(p *elastic.Plan) string {
	var b strings.Builder
	fmt.Fprint(&b, p.Generation, ":")
	for _, m := range p.Members {
		fmt.Fprint(&b, " ", m.Incarnation)
	}
	for _, c := range p.Cards {
		fmt.Fprintf(&b, " %s+%d", c.Rack, c.Info.Ports)
	}
	for _, l := range p.Losses {
		fmt.Fprintf(&b, " lost %s in %d", l.ID, l.Generation)
	}
	return b.String()
}

// TestPlans: each plan follows from the roster and the plan before; "" means that there is none.
func TestPlans(t *testing.T) {
	type turn struct{ roster, left, want string }
	for name, turns := range map[string][]turn{
		"first waits":          {{"a b", "", ""}, {"c b a", "", "1: a- b- c-"}, {"a b c", "", ""}},
		"ranks stay":           {{"b c d", "", "1: b- c- d-"}, {"a b c d aa", "", "2: b- c- d- a- aa-"}, {"a c d", "b-,aa-", "3: c- d- a-"}},
		"losses":               {{"a b c", "", "1: a- b- c-"}, {"a c", "", "2: a- c- lost b in 2"}, {"c", "a-", "3: c- lost b in 2"}},
		"the lost stay away":   {{"a b c", "", "1: a- b- c-"}, {"a c", "", "2: a- c- lost b in 2"}, {"a b c", "", ""}, {"a b'1 c", "", "3: a- c- b1' lost b in 2"}},
		"restart":              {{"a b c", "", "1: a- b- c-"}, {"a b'1 c", "", "2: a- c- b1' lost b in 2"}},
		"needs":                {{"a b c", "", "1: a- b- c-"}, {"a b>1 c", "", ""}, {"a b>2 c", "", "2: a- b- c-"}, {"a>9 b>2 c", "", "9: a- b- c-"}, {"a>9 b c", "", ""}},
		"all gone":             {{"a b c", "", "1: a- b- c-"}, {"", "", ""}, {"d e", "", ""}, {"d e f", "", "2: d- e- f- lost a in 2 lost b in 2 lost c in 2"}},
		"cards":                {{"a@r+3 b@r+3 c@s+2", "", "1: a- b- c- r+3 s+2"}, {"a@r+3 b@r c@s+2", "", "2: a- b- c- s+2"}, {"a@r+3 b@r+3 c@s+2", "", "3: a- b- c- r+3 s+2"}},
		"other cards":          {{"a@r+3 b@r+4 c", "", "1: a- b- c-"}, {"a@r+4 b@r+4 c", "", "2: a- b- c- r+4"}, {"a@r+5 b@r+5 c", "", "3: a- b- c- r+5"}},
		"a newcomer's card":    {{"a@r+3 b c", "", "1: a- b- c- r+3"}, {"a@r+3 b c d@r", "", "2: a- b- c- d-"}, {"a@r+3 b c d@r+3", "", "3: a- b- c- d- r+3"}},
		"the card of no rack":  {{"a+3 b+3 c+3", "", "1: a- b- c-"}},
		"the only one is left": {{"a b c", "", "1: a- b- c-"}, {"b", "a-,c-", "2: b-"}},
	} {
		t.Run(name, func(t *testing.T) {
			plan := &elastic.Plan{}
			for i, turn := range turns {
				left := map[string]bool{}
				for _, incarnation := range strings.Split(turn.left, ",") {
					left[incarnation] = true
				}
				next, ok := elastic.NextPlan(plan, registered(turn.roster), left, 3)
				if turn.want == "" {
					require.False(t, ok, "turn %d: %v", i, next)
					continue
				}
				require.True(t, ok, "turn %d", i)
				require.Equal(t, turn.want, text(next), "turn %d", i)
				plan = next
			}
		})
	}
}

// TestPlanForgets: a plan keeps the latest losses.
func TestPlanForgets(t *testing.T) {
	plan, _ := elastic.NextPlan(&elastic.Plan{}, registered("a b"), nil, 2)
	for i := range 300 {
		plan, _ = elastic.NextPlan(plan, registered(fmt.Sprintf("a b'%d", i)), nil, 2)
	}
	require.Len(t, plan.Losses, 256)
	require.EqualValues(t, 301, plan.Losses[255].Generation)
	require.EqualValues(t, 46, plan.Losses[0].Generation)
}

// TestAgents: the agent is the lowest rank of a rack, and the next lowest when it is gone.
func TestAgents(t *testing.T) {
	plan, _ := elastic.NextPlan(&elastic.Plan{}, registered("a b@r c@r d@r+3"), nil, 4)
	require.Equal(t, []int{1, 2, 3}, plan.Rack("r"))
	require.Nil(t, plan.Card("r"))
	require.Nil(t, plan.Card(""))
	plan, _ = elastic.NextPlan(plan, registered("a c@r+3 d@r+3"), nil, 4)
	require.Equal(t, []int{1, 2}, plan.Rack("r"))
	require.Equal(t, "c", plan.Members[1].ID)
	require.Equal(t, 3, plan.Card("r").Ports)
}
