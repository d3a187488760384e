// Driver of the Go client (github.com/apache/rocketmq-client-go/v2).
// Reads JSON commands and prints JSON events, one per line; foreign.py documents both.
package main

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"strings"
	"sync"

	"github.com/apache/rocketmq-client-go/v2"
	"github.com/apache/rocketmq-client-go/v2/consumer"
	"github.com/apache/rocketmq-client-go/v2/primitive"
	"github.com/apache/rocketmq-client-go/v2/rlog"
)

type message struct {
	Body, Tag, Keys string
	Delay           int
	Shard           *int
	Oneway, Async   bool
	Transactional   bool
	Properties      map[string]any
}

type command struct {
	Do, Namesrv, Group, Topic, Expression, Body string
	Account, Secret                             string
	Fails, Sql, Orderly, Broadcasting           bool
	Transactions, Replies                       bool
	Messages                                    []message
}

type event map[string]any

var printing sync.Mutex

// Callbacks come from the library's goroutines.
func say(name string, values event) {
	if values == nil {
		values = event{}
	}
	values["event"] = name
	line, err := json.Marshal(values)
	if err != nil {
		panic(err)
	}
	printing.Lock()
	defer printing.Unlock()
	fmt.Println(string(line))
}

func must(err error) {
	if err != nil {
		say("error", event{"text": err.Error()})
	}
}

// The account of the requests; an empty account signs nothing.
func credentials(c command) primitive.Credentials {
	return primitive.Credentials{AccessKey: c.Account, SecretKey: c.Secret}
}

var pushing rocketmq.PushConsumer

func consume(c command) {
	model := consumer.Clustering
	if c.Broadcasting {
		model = consumer.BroadCasting
	}
	var err error
	pushing, err = rocketmq.NewPushConsumer(
		consumer.WithGroupName(c.Group),
		consumer.WithNsResolver(primitive.NewPassthroughResolver([]string{c.Namesrv})),
		consumer.WithInstance(fmt.Sprintf("consumer-%d", os.Getpid())),
		consumer.WithConsumeFromWhere(consumer.ConsumeFromFirstOffset),
		consumer.WithConsumerModel(model),
		consumer.WithConsumerOrder(c.Orderly),
		consumer.WithCredentials(credentials(c)),
	)
	must(err)
	kind := consumer.TAG
	if c.Sql {
		kind = consumer.SQL92
	}
	selector := consumer.MessageSelector{Type: kind, Expression: c.Expression}
	must(pushing.Subscribe(c.Topic, selector,
		func(_ context.Context, got ...*primitive.MessageExt) (consumer.ConsumeResult, error) {
			for _, each := range got {
				received(each)
				if c.Replies && strings.HasPrefix(string(each.Body), "question") {
					reply(each)
				}
			}
			switch {
			case !c.Fails:
				return consumer.ConsumeSuccess, nil
			case c.Orderly:
				return consumer.SuspendCurrentQueueAMoment, nil
			default:
				return consumer.ConsumeRetryLater, nil
			}
		}))
	if c.Replies {
		replying := c
		replying.Group, replying.Transactions = c.Group+"-replies", false
		produce(replying)
	}
	must(pushing.Start())
	say("ready", nil)
}

func received(each *primitive.MessageExt) {
	say("message", event{
		"topic": each.Topic, "id": each.MsgId, "keys": each.GetKeys(), "tag": each.GetTags(),
		"body": string(each.Body), "queue": each.Queue.QueueId, "offset": each.QueueOffset,
		"reconsume": each.ReconsumeTimes,
	})
}

func stop() {
	stopProducing()
	if pushing != nil {
		must(pushing.Shutdown())
	}
	say("stopped", nil)
	os.Exit(0)
}

func main() {
	rlog.SetLogLevel("error")
	commands := bufio.NewScanner(os.Stdin)
	commands.Buffer(nil, 1<<24)
	for commands.Scan() {
		var c command
		if err := json.Unmarshal(commands.Bytes(), &c); err != nil {
			panic(err)
		}
		switch c.Do {
		case "produce":
			produce(c)
			say("ready", nil)
		case "send":
			send(c)
		case "send_batch":
			sendBatch(c)
		case "request":
			request(c)
		case "consume":
			consume(c)
		case "stop":
			stop()
		default:
			panic(c.Do)
		}
	}
}
