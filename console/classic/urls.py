"""Classic's paths, below the root."""

from django.urls import path

from console.classic import deadletters, groups, messages, session, topics

app_name = "classic"

CALLS = {
    "login/check.query": session.Check,
    "login/login.do": session.Login,
    "login/logout.do": session.Logout,
    "cluster/list.query": topics.ClusterList,
    "topic/list.query": topics.TopicNames,
    "topic/list.queryTopicType": topics.TopicTypes,
    "topic/stats.query": topics.TopicStats,
    "topic/route.query": topics.TopicRoute,
    "topic/queryConsumerByTopic.query": topics.TopicConsumers,
    "topic/queryTopicConsumerInfo.query": topics.TopicConsumerNames,
    "topic/examineTopicConfig.query": topics.TopicConfigs,
    "consumer/groupList.query": groups.GroupList,
    "consumer/group.query": groups.GroupOne,
    "consumer/queryTopicByConsumer.query": groups.GroupTopics,
    "consumer/consumerConnection.query": groups.GroupConnection,
    "producer/producerConnection.query": groups.ProducerConnection,
    "message/viewMessage.query": messages.ViewMessage,
    "message/queryMessageByTopicAndKey.query": messages.MessagesByKey,
    "message/queryMessagePageByTopic.query": messages.MessagePage,
    "messageTrace/viewMessage.query": messages.ViewMessage,
    "messageTrace/viewMessageTraceGraph.query": messages.TraceGraph,
    "dlqMessage/queryDlqMessageByConsumerGroup.query": deadletters.DeadLetterPage,
    "dlqMessage/batchResendDlqMessage.do": deadletters.Resend,
    "dlqMessage/exportDlqMessage.do": deadletters.Export,
}

urlpatterns = [path(address, view.as_view(), name=address) for address, view in CALLS.items()]
