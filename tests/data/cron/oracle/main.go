// Asks robfig/cron when the schedules of cases.json are due, and prints the cases with its answers.
package main

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"time"
	_ "time/tzdata"

	"github.com/robfig/cron/v3"
)

// patience is far longer than any answer takes; a search that outlasts it goes round in circles.
const patience = 5 * time.Second

// A Case is one question: what are the Count times of Schedule, read in Zone, that follow After? With Until, all
// times up to then are asked for, and the answer is how many there are in each month, and a digest of them.
type Case struct {
	About    string  `json:"about"`
	Schedule string  `json:"schedule"`
	Zone     *string `json:"zone,omitempty"`
	After    string  `json:"after"`
	Count    int     `json:"count,omitempty"`
	Until    string  `json:"until,omitempty"`

	// Eagleray and Why say what Eagleray answers instead, where it differs on purpose.
	Eagleray []string `json:"eagleray,omitempty"`
	Why      string   `json:"why,omitempty"`
}

// An Answer is a case with what robfig/cron makes of it. A null in Next means never; Hangs that it gave no answer.
type Answer struct {
	Case
	Next   []*string `json:"next,omitempty"`
	Months *[12]int  `json:"months,omitempty"`
	Digest string    `json:"digest,omitempty"`
	Error  string    `json:"error,omitempty"`
	Hangs  bool      `json:"hangs,omitempty"`
}

func main() {
	if err := run(os.Stdin, os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// run writes a JSON list with one case to a line, so that a changed answer is a changed line.
func run(in io.Reader, out io.Writer) error {
	var cases []Case
	if err := json.NewDecoder(in).Decode(&cases); err != nil {
		return err
	}
	lines := make([][]byte, 0, len(cases))
	for _, one := range cases {
		answer, err := ask(one)
		if err != nil {
			return fmt.Errorf("%s: %w", one.About, err)
		}
		line, err := encode(answer)
		if err != nil {
			return err
		}
		lines = append(lines, line)
	}
	_, err := fmt.Fprintf(out, "[\n%s\n]\n", bytes.Join(lines, []byte(",\n")))
	return err
}

func encode(answer Answer) ([]byte, error) {
	var line bytes.Buffer
	encoder := json.NewEncoder(&line)
	encoder.SetEscapeHTML(false)
	err := encoder.Encode(answer)
	return bytes.TrimSpace(line.Bytes()), err
}

func ask(one Case) (Answer, error) {
	answer := Answer{Case: one}
	after, err := time.Parse(time.RFC3339Nano, one.After)
	if err != nil {
		return answer, err
	}
	text := one.Schedule
	if one.Zone != nil {
		text = "TZ=" + *one.Zone + " " + text
	}
	schedule, err := cron.ParseStandard(text)
	if err != nil {
		answer.Error = err.Error()
		return answer, nil
	}
	if one.Until != "" {
		until, err := time.Parse(time.RFC3339Nano, one.Until)
		if err != nil {
			return answer, err
		}
		answer.Months, answer.Digest = summary(schedule, after.UTC(), until.UTC())
		return answer, nil
	}
	count := one.Count
	if count == 0 {
		count = 3
	}
	times := make(chan []*string, 1)
	go func() { times <- following(schedule, after.UTC(), count) }()
	select {
	case answer.Next = <-times:
	case <-time.After(patience):
		answer.Hangs = true
	}
	return answer, nil
}

func following(schedule cron.Schedule, after time.Time, count int) []*string {
	var times []*string
	for len(times) < count {
		after = schedule.Next(after)
		if after.IsZero() {
			return append(times, nil)
		}
		shown := after.UTC().Format(time.RFC3339Nano)
		times = append(times, &shown)
	}
	return times
}

// summary counts the times up to until by their month in UTC, and digests them, one to a line.
func summary(schedule cron.Schedule, after, until time.Time) (*[12]int, string) {
	var months [12]int
	digest := sha256.New()
	for {
		after = schedule.Next(after)
		if after.IsZero() || after.After(until) {
			return &months, hex.EncodeToString(digest.Sum(nil))
		}
		shown := after.UTC()
		months[shown.Month()-1]++
		fmt.Fprintln(digest, shown.Format(time.RFC3339Nano))
	}
}
