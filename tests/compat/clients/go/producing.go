// The producer of the Go driver: every kind of send, and transactions.
package main

import (
	"context"
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/apache/rocketmq-client-go/v2"
	"github.com/apache/rocketmq-client-go/v2/consumer"
	"github.com/apache/rocketmq-client-go/v2/primitive"
	"github.com/apache/rocketmq-client-go/v2/producer"
)

var plain rocketmq.Producer
var transactional rocketmq.TransactionProducer

// Messages with a shard go to the queue of the shard, others round robin.
type byShard struct{ others producer.QueueSelector }

func (s byShard) Select(
	m *primitive.Message, queues []*primitive.MessageQueue, last string,
) *primitive.MessageQueue {
	shard, err := strconv.Atoi(m.GetShardingKey())
	if err != nil {
		return s.others.Select(m, queues, last)
	}
	return queues[shard%len(queues)]
}

// The key of a message has two states: after sending, "-", and in a check-back.
type keyDecides struct{}

func state(keys string, at int) primitive.LocalTransactionState {
	switch strings.Split(strings.TrimSpace(keys), "-")[at] {
	case "commit":
		return primitive.CommitMessageState
	case "rollback":
		return primitive.RollbackMessageState
	default:
		return primitive.UnknowState
	}
}

func (keyDecides) ExecuteLocalTransaction(m *primitive.Message) primitive.LocalTransactionState {
	return state(m.GetKeys(), 0)
}

func (keyDecides) CheckLocalTransaction(m *primitive.MessageExt) primitive.LocalTransactionState {
	say("checked", event{"keys": strings.TrimSpace(m.GetKeys())})
	return state(m.GetKeys(), 1)
}

func produce(c command) {
	options := []producer.Option{
		producer.WithGroupName(c.Group),
		producer.WithCredentials(credentials(c)),
		producer.WithNsResolver(primitive.NewPassthroughResolver([]string{c.Namesrv})),
		producer.WithInstanceName(fmt.Sprintf("producer-%d", os.Getpid())),
		producer.WithQueueSelector(byShard{producer.NewRoundRobinQueueSelector()}),
	}
	var err error
	if c.Transactions {
		transactional, err = rocketmq.NewTransactionProducer(keyDecides{}, options...)
		must(err)
		must(transactional.Start())
	} else {
		plain, err = rocketmq.NewProducer(options...)
		must(err)
		must(plain.Start())
	}
}

func asMessage(topic string, each message) *primitive.Message {
	made := primitive.NewMessage(topic, []byte(each.Body))
	if each.Tag != "" {
		made.WithTag(each.Tag)
	}
	if each.Keys != "" {
		made.WithKeys([]string{each.Keys})
	}
	if each.Delay > 0 {
		made.WithDelayTimeLevel(each.Delay)
	}
	if each.Shard != nil {
		made.WithShardingKey(strconv.Itoa(*each.Shard))
	}
	for name, value := range each.Properties {
		made.WithProperty(name, fmt.Sprint(value))
	}
	return made
}

func sent(result *primitive.SendResult, err error) {
	if err != nil {
		say("error", event{"text": err.Error()})
		return
	}
	status := "SEND_OK"
	if result.Status != primitive.SendOK {
		status = fmt.Sprint(result.Status)
	}
	values := event{
		"id": result.MsgID, "offsetId": result.OffsetMsgID, "offset": result.QueueOffset,
		"status": status,
	}
	if result.MessageQueue != nil {
		values["queue"] = result.MessageQueue.QueueId
	}
	say("sent", values)
}

func send(c command) {
	background := context.Background()
	for _, each := range c.Messages {
		made := asMessage(c.Topic, each)
		switch {
		case each.Oneway:
			must(plain.SendOneWay(background, made))
			say("sent", event{"id": "", "offset": -1, "status": "ONEWAY"})
		case each.Async:
			must(plain.SendAsync(background,
				func(_ context.Context, result *primitive.SendResult, err error) {
					sent(result, err)
				}, made))
		case each.Transactional:
			result, err := transactional.SendMessageInTransaction(background, made)
			if err != nil {
				must(err)
				continue
			}
			sent(result.SendResult, nil)
		default:
			sent(plain.SendSync(background, made))
		}
	}
}

func sendBatch(c command) {
	made := make([]*primitive.Message, 0, len(c.Messages))
	for _, each := range c.Messages {
		made = append(made, asMessage(c.Topic, each))
	}
	sent(plain.SendSync(context.Background(), made...))
}

// Retries once: a reply is lost when the broker does not know the requester yet.
func request(c command) {
	ask := func() (*primitive.Message, error) {
		question := primitive.NewMessage(c.Topic, []byte(c.Body))
		return plain.Request(context.Background(), 10*time.Second, question)
	}
	answer, err := ask()
	if err != nil {
		answer, err = ask()
	}
	if err != nil {
		must(err)
		return
	}
	say("replied", event{"body": string(answer.Body)})
}

func reply(question *primitive.MessageExt) {
	// The library sends a request before the broker has the requester; the library's example waits, too.
	time.Sleep(time.Second)
	answer, err := consumer.CreateReplyMessage(question, nil)
	must(err)
	// CreateReplyMessage encodes the body as properties.
	answer.Body = []byte("re: " + string(question.Body))
	_, err = plain.SendSync(context.Background(), answer)
	must(err)
}

func stopProducing() {
	if plain != nil {
		must(plain.Shutdown())
	}
	if transactional != nil {
		must(transactional.Shutdown())
	}
}
