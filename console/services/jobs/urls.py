"""/clusters/<cluster>/jobs/…"""

from django.urls import path

from console.services.jobs import views

app_name = "jobs"

urlpatterns = [
    path("jobs/", views.JobListPage.as_view(), name="list"),
    path("jobs/missing/", views.MissingPart.as_view(), name="missing"),
    path("jobs/start/<str:kind>/", views.StartPage.as_view(), name="start"),
    path("jobs/<int:number>/", views.JobPage.as_view(), name="detail"),
    path("jobs/<int:number>/cancel/", views.CancelPage.as_view(), name="cancel"),
    path("jobs/<int:number>/pause/", views.PausePage.as_view(), name="pause"),
    path("jobs/<int:number>/resume/", views.ResumePage.as_view(), name="resume"),
    path("jobs/<int:number>/continue/", views.ContinuePage.as_view(), name="continue"),
    path("jobs/<int:number>/files/<str:name>", views.FilePage.as_view(), name="file"),
]
